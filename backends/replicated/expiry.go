package replicated

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockgateway/lockgateway/lock"
)

// Slots that expire. Expiry raises no event: who waits looks at the keys when
// they may be gone, and who is asked looks before it answers.

// lookAtKeys finds out how long keys have left, for the requests if any.
func (c *committer) lookAtKeys(keys []uint64, requests []*request) {
	started := time.Now()
	var left []time.Duration
	err := c.call(func(ctx context.Context) (err error) {
		left, err = c.b.store.Remaining(ctx, keys)
		return err
	})
	if err != nil {
		c.refuseAll(requests, err)
		c.backOff()
		return
	}
	for i, key := range keys {
		c.noteExpiry(key, started, left[i])
	}
	for _, r := range requests {
		r.looked = append(r.looked, keys...)
	}
}

// noteExpiry notes that a key had so much time left at some moment; 0 is none.
// Keys that the record does not name any more are forgotten.
func (c *committer) noteExpiry(key uint64, at time.Time, left time.Duration) {
	if c.expiries == nil {
		c.expiries = make(map[uint64]expiry)
	}
	until := at.Add(left)
	c.expiries[key] = expiry{until: until, lookAt: later(until, at.Add(keyPoll)), expired: left <= 0}
	if c.core.rec == nil || len(c.expiries) <= 2*len(c.core.rec.holders)+1 {
		return
	}
	named := make(map[uint64]bool)
	for i := range c.core.rec.holders {
		named[c.core.rec.holders[i].expiring] = true
	}
	for other := range c.expiries {
		if !named[other] && other != key {
			delete(c.expiries, other)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nextExpiry returns when to look at the record's keys, if it has any.
func (c *committer) nextExpiry() (at time.Time, ok bool) {
	if c.core.rec == nil {
		return at, false
	}
	for i := range c.core.rec.holders {
		key := c.core.rec.holders[i].expiring
		e := c.expiries[key] // a key that nobody looked at is due
		if key != 0 && !e.expired && (!ok || e.lookAt.Before(at)) {
			at, ok = e.lookAt, true
		}
	}
	return at, ok
}

// dueKeys returns the record's keys that may be gone.
func (c *committer) dueKeys(now time.Time) []uint64 {
	var keys []uint64
	if c.core.rec != nil {
		for i := range c.core.rec.holders {
			key := c.core.rec.holders[i].expiring
			if e := c.expiries[key]; key != 0 && !e.expired && !now.Before(e.lookAt) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// prepareKeys makes the keys that some grants need.
func (c *committer) prepareKeys(requests []*request) {
	var (
		keys    = make([]Expiring, len(requests))
		errs    = make([]error, len(requests))
		started = time.Now()
	)
	for _, r := range requests {
		c.core.discardKey(r) // it is too old
	}
	_ = c.call(func(ctx context.Context) error {
		atOnce(len(requests), func(i int) { keys[i], errs[i] = c.b.store.NewExpiring(ctx, requests[i].ttl) })
		return errors.Join(errs...)
	})
	failed := false
	for i, r := range requests {
		switch {
		case errs[i] != nil && r.phase == pending:
			c.core.drop(r, answer{err: unavailable(errs[i])})
		case errs[i] != nil:
			failed = failed || r.phase == queued // it keeps its place
		case r.phase == done:
			c.core.discards = append(c.core.discards, keys[i].ID)
		default:
			r.key, r.prepared = keys[i], started
		}
	}
	if failed {
		c.backOff()
	}
}

// atOnce calls f for each of n, several at a time, and returns when all are done.
func atOnce(n int, f func(i int)) {
	var g errgroup.Group
	g.SetLimit(16)
	for i := range n {
		g.Go(func() error {
			f(i)
			return nil
		})
	}
	_ = g.Wait()
}

// estimate fills in how long slots have left, as far as is known.
func (c *committer) estimate(a *answer) {
	left := func(key uint64, ttl time.Duration) time.Duration {
		if e, ok := c.expiries[key]; ok {
			return max(time.Until(e.until), time.Millisecond)
		}
		return ttl
	}
	if a.key != 0 {
		a.acquired.ExpiresIn = left(a.key, a.acquired.ExpiresIn)
	}
	for i, key := range a.keys {
		if key != 0 {
			a.value.Holders[i].ExpiresIn = left(key, a.value.Holders[i].ExpiresIn)
		}
	}
}

// granted is called when a request was answered with a new key. It reports
// whether the answer may go out: not if the time of the slot began so long
// before the grant that less is left than was asked for.
func (c *committer) granted(r *request) bool {
	c.noteExpiry(r.key.ID, r.prepared, r.key.TTL)
	if !tooOld(r) {
		return true
	}
	c.late = append(c.late, r)
	return false
}

func tooOld(r *request) bool { return time.Since(r.prepared) > r.key.TTL-r.ttl }

// restartKeys starts the time of late grants over and answers them. One that
// has run out is taken off again.
func (c *committer) restartKeys() {
	list := c.late
	c.late = nil
	errs := make([]error, len(list))
	started := time.Now()
	_ = c.call(func(ctx context.Context) error {
		atOnce(len(list), func(i int) { errs[i] = c.b.store.Restart(ctx, list[i].key) })
		return errors.Join(errs...)
	})
	for i, r := range list {
		if errs[i] == nil {
			c.noteExpiry(r.key.ID, started, r.key.TTL)
		}
		if errs[i] != nil || r.gone {
			c.core.add(giveBackOf(r, r.answer.acquired))
			r.answer = answer{err: lateError(r.answer.repeat, errs[i])}
		}
		r.deliver()
	}
}

// lateError is the answer to a grant whose time could not be started over. If
// the holder had the slot before, it now ends with the new key.
func lateError(repeat bool, err error) error {
	switch {
	case err == nil:
		return nil // nobody hears it
	case repeat:
		return lock.ErrOutcomeUnknown
	case errors.Is(err, ErrExpired):
		return errSlotExpired
	}
	return unavailable(err)
}
