package memory

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// walked bounds how many holders, and how many places of a queue, are looked at for
// one lock's detail, since its shard has other locks.
const walked = 10_000

var _ lock.Inspector = (*Backend)(nil)

// Locks implements lock.Inspector. It holds one shard at a time, and copies what
// is asked for there.
func (b *Backend) Locks(ctx context.Context, idle bool) iter.Seq2[lock.State, error] {
	return func(yield func(lock.State, error) bool) {
		var found []shown
		for i := range b.shards {
			var closed bool
			found, closed = b.shards[i].show(found[:0], idle)
			if err := ctx.Err(); err != nil || closed {
				yield(lock.State{}, cmp.Or(err, lock.ErrClosing))
				return
			}
			wall := b.wall()
			for _, s := range found {
				if !yield(s.state(wall)) {
					return
				}
			}
		}
	}
}

// shown is what a list has of a lock.
type shown struct {
	name                string
	held, waiting       int64
	heldSince, waitFrom instant
}

// show appends the shard's locks to a list.
func (sh *shard) show(list []shown, idle bool) (_ []shown, closed bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for s := range sh.locks.all {
		if idle || s.held() > 0 {
			list = append(list, s.show())
		}
	}
	return list, sh.closed
}

func (s *semaphore) show() shown {
	v := shown{name: s.name, held: s.held(), waiting: s.waiting(), heldSince: s.heldSince}
	if v.waiting > 0 {
		v.waitFrom = s.busy.queue.head.since
	}
	return v
}

func (v shown) state(wall func(instant) time.Time) (lock.State, error) {
	key, err := lock.ParseKey(v.name)
	state := lock.State{Key: key, Held: v.held, Waiting: v.waiting}
	if v.held > 0 {
		state.HeldSince = wall(v.heldSince)
	}
	if v.waiting > 0 {
		state.WaitingSince = wall(v.waitFrom)
	}
	return state, err
}

// wall returns what tells the time of instants as a clock on the wall shows it
// now: set back an hour ago, it would have shown another time then.
func (b *Backend) wall() func(instant) time.Time {
	now, at := time.Now(), b.now()
	return func(i instant) time.Time { return now.Add(i - at).Round(0) }
}

// Inspect implements lock.Inspector.
func (b *Backend) Inspect(_ context.Context, key lock.Key) (lock.Detail, error) {
	d, err := b.inspect(key)
	slices.SortFunc(d.Holders, func(x, y lock.HolderDetail) int { return cmp.Compare(x.Token, y.Token) })
	return d, err
}

func (b *Backend) inspect(key lock.Key) (lock.Detail, error) {
	sh, hash := b.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return lock.Detail{}, lock.ErrClosing
	}
	s := sh.locks.find(hash, key.Name())
	if s == nil {
		return lock.Detail{State: lock.State{Key: key}, Fresh: true}, nil
	}
	wall := b.wall()
	state, err := s.show().state(wall)
	d := lock.Detail{State: state, Anonymous: s.anonymous}
	if s.busy == nil {
		return d, err
	}
	now := b.now()
	d.Holders = make([]lock.HolderDetail, 0, min(len(s.busy.holders), walked))
	for _, h := range s.busy.holders {
		if len(d.Holders) == walked {
			break
		}
		d.Holders = append(d.Holders, lock.HolderDetail{
			Holder: lock.Holder{Name: h.name, Token: h.token, ExpiresIn: h.left(now)},
			Since:  wall(h.since),
		})
	}
	d.Queue = s.busy.queue.entries(wall)
	return d, err
}

// entries lists the queue, consecutive places without a name as one.
func (q *queue) entries(wall func(instant) time.Time) []lock.QueueEntry {
	var list []lock.QueueEntry
	p := q.head
	for n := 0; p != nil && n < walked; n++ {
		if last := len(list) - 1; p.holder == "" && last >= 0 && !list[last].Named {
			list[last].Count++
		} else {
			list = append(list, lock.QueueEntry{Count: 1, Named: p.holder != "", Since: wall(p.since)})
		}
		p = p.next
	}
	return list
}

// Gateways implements lock.Inspector: there are none to share the locks with.
func (b *Backend) Gateways(context.Context) ([]lock.Gateway, error) { return nil, nil }

// Summary implements lock.Inspector. It holds one shard at a time.
func (b *Backend) Summary() lock.Summary {
	var sum lock.Summary
	for i := range b.shards {
		b.shards[i].addTo(&sum)
	}
	return sum
}

func (sh *shard) addTo(sum *lock.Summary) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := sh.backend.now()
	for s := range sh.locks.all {
		if s.held() == 0 {
			continue
		}
		v := s.show()
		sum.Held += v.held
		sum.Waiting += v.waiting
		if since, known := s.oldestHold(); known {
			sum.OldestHold = max(sum.OldestHold, now-since)
		}
		if v.waiting > 0 {
			sum.OldestWait = max(sum.OldestWait, now-v.waitFrom)
		}
	}
}

// oldestHold is since when the slot is held that has been so for longest, as far as
// that is known; see lock.Summary.
func (s *semaphore) oldestHold() (since instant, known bool) {
	if s.max == 1 {
		return s.heldSince, s.held() > 0
	}
	if s.busy == nil {
		return 0, false
	}
	for _, h := range s.busy.holders {
		if !known || h.since < since {
			since, known = h.since, true
		}
	}
	return since, known
}
