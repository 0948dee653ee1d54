package locktest

import (
	"context"
	"iter"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

const (
	listsIdle        fault = "lists idle locks as others"
	leavesOutAwaited fault = "leaves locks with waiters out of the list"
	listsOn          fault = "lists on though its context is done"
	sortsQueue       fault = "shows named places before others"
	countsLast       fault = "dates a queue by its tail"
	datesNoHead      fault = "dates a queue by who came first ever"
	countsGone       fault = "counts waiters that have left"
	agesLocks        fault = "takes the age of a lock for that of its slots"
	knowsNobody      fault = "lists other gateways only"
)

// Locks shows one lock at a time.
func (b *naive) Locks(ctx context.Context, idle bool) iter.Seq2[lock.State, error] {
	return func(yield func(lock.State, error) bool) {
		b.mu.Lock()
		var names []string
		for name := range b.locks {
			names = append(names, name)
		}
		b.mu.Unlock()
		for _, name := range names {
			if ctx.Err() != nil && b.fault != listsOn {
				yield(lock.State{}, ctx.Err())
				return
			}
			key, err := lock.ParseKey(name)
			if err != nil {
				panic(err)
			}
			d, _ := b.Inspect(ctx, key)
			switch {
			case d.Held == 0 && d.Waiting == 0 && !idle && b.fault != listsIdle:
			case d.Waiting > 0 && b.fault == leavesOutAwaited:
			case !yield(d.State, nil):
				return
			}
		}
	}
}

func (b *naive) Inspect(_ context.Context, key lock.Key) (lock.Detail, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := lock.Detail{State: lock.State{Key: key}, Fresh: true}
	l := b.locks[key.Name()]
	if l == nil {
		return d, nil
	}
	d.Fresh = false
	d.Anonymous = l.anonymous
	d.Held, d.Waiting = l.held(), int64(len(l.queue))
	if d.Held > 0 {
		d.HeldSince = l.since
	}
	for _, h := range l.holders {
		left := time.Duration(0)
		if !h.expires.IsZero() {
			left = time.Until(h.expires)
		}
		d.Holders = append(d.Holders, lock.HolderDetail{Holder: lock.Holder{Name: h.name, Token: h.token, ExpiresIn: left}, Since: h.since})
	}
	for i, p := range l.queue {
		if i == 0 || b.fault == countsLast {
			d.WaitingSince = p.since
		}
		if i == 0 && b.fault == datesNoHead {
			d.WaitingSince = l.first
		}
		q := lock.QueueEntry{Count: 1, Named: p.holder != "", Since: p.since}
		last := len(d.Queue) - 1
		switch {
		case b.fault == sortsQueue && q.Named:
			d.Queue = append([]lock.QueueEntry{q}, d.Queue...)
		case last >= 0 && !q.Named && !d.Queue[last].Named:
			d.Queue[last].Count++
		default:
			d.Queue = append(d.Queue, q)
		}
	}
	return d, nil
}

func (b *naive) Gateways(context.Context) ([]lock.Gateway, error) {
	if b.fault == knowsNobody {
		return []lock.Gateway{{ID: "another"}}, nil
	}
	return nil, nil
}

func (b *naive) Summary() (sum lock.Summary) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.locks {
		if len(l.queue) > 0 {
			sum.Held += l.held()
			sum.Waiting += int64(len(l.queue))
			if l.max == 1 && l.held() > 0 || b.fault == agesLocks {
				sum.OldestHold = max(sum.OldestHold, time.Since(l.since))
			}
			for _, h := range l.holders {
				sum.OldestHold = max(sum.OldestHold, time.Since(h.since))
			}
			sum.OldestWait = max(sum.OldestWait, time.Since(l.queue[0].since))
		}
	}
	if b.fault == countsGone {
		sum.Waiting = b.waited
	}
	return sum
}
