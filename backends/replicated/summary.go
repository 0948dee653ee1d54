package replicated

import (
	"slices"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// Summary implements lock.Inspector. Locks that nobody waits for here do not count:
// this gateway hears nothing of them.
func (b *Backend) Summary() lock.Summary {
	var sum lock.Summary
	now := time.Now()
	b.eachCommitter(func(c *committer) { c.addTo(&sum, now) })
	return sum
}

func (c *committer) addTo(sum *lock.Summary, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.core.waiting() {
		return
	}
	// Of clocks that differ, the duration may be less than nothing.
	if rec := c.core.rec; rec != nil && rec.held() > 0 {
		sum.Held += rec.held()
		if since, known := rec.oldestHold(c.core.max); known {
			sum.OldestHold = max(sum.OldestHold, now.Sub(time.UnixMilli(since)))
		}
	}
	wait := func(r *request) {
		sum.OldestWait = max(sum.OldestWait, now.Sub(time.UnixMilli(r.since)))
	}
	for _, q := range c.core.runs {
		sum.Waiting += int64(q.live)
		if i := slices.IndexFunc(q.waiters, func(r *request) bool { return r.phase == queued }); i >= 0 {
			wait(q.waiters[i])
		}
	}
	sum.Waiting += int64(len(c.core.named))
	for _, waiters := range c.core.named {
		wait(waiters[0])
	}
}

// oldestHold is since when the slot is held that has been so for longest, as far as
// that is known; see lock.Summary.
func (r *record) oldestHold(limit int64) (since int64, known bool) {
	if limit == 1 {
		return r.busySince, r.held() > 0
	}
	for _, h := range r.holders {
		if !known || h.since < since {
			since, known = h.since, true
		}
	}
	return since, known
}
