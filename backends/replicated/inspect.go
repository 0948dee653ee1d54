package replicated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

var _ lock.Inspector = (*Backend)(nil)

// chunk is how many records of a list are looked at together, for the sake of the
// keys that expire.
const chunk = 128

// Locks implements lock.Inspector. It lists what the store has, as it would be if
// somebody used the locks now: without the places of gateways that have ended, and
// the slots that have expired.
func (b *Backend) Locks(ctx context.Context, idle bool) iter.Seq2[lock.State, error] {
	return func(yield func(lock.State, error) bool) {
		ctx, alive, stop := b.untilSilent(ctx)
		defer stop()
		look := &inspection{b: b}
		var list []*inspected
		flush := func() (more bool, err error) {
			if err := look.freshen(ctx, list); err != nil {
				return false, err
			}
			for _, l := range list {
				if l.err == nil && !idle && l.rec.idle() {
					continue
				}
				if !yield(l.state(), l.err) {
					return false, nil
				}
			}
			list = list[:0]
			alive()
			return true, nil
		}
		more := true
		var failure error
		err := b.store.Records(ctx, func(stored string, e Entry) bool {
			alive()
			list = append(list, inspect(stored, e))
			if len(list) == chunk {
				more, failure = flush()
			}
			return more && failure == nil
		})
		if err = cmp.Or(err, failure); err == nil && more {
			_, err = flush()
		}
		if err != nil {
			yield(lock.State{}, b.inspectError(ctx, err))
		}
	}
}

// untilSilent returns a context that ends when the store has not answered for the
// request timeout; alive says that it has.
func (b *Backend) untilSilent(ctx context.Context) (_ context.Context, alive func(), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	unbind := context.AfterFunc(b.ctx, cancel)
	timer := time.AfterFunc(b.requestTimeout(), cancel)
	return ctx, func() { timer.Reset(b.requestTimeout()) }, func() {
		timer.Stop()
		unbind()
		cancel()
	}
}

// inspectError is the error of a look that failed.
func (b *Backend) inspectError(ctx context.Context, err error) error {
	switch {
	case b.closed.Load():
		return lock.ErrClosing
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	return unavailable(err)
}

func (l *inspected) state() lock.State {
	if l.err != nil {
		return lock.State{}
	}
	s := lock.State{Key: l.key, Held: l.rec.held(), Waiting: l.rec.waiting()}
	if s.Held > 0 {
		s.HeldSince = time.UnixMilli(l.rec.busySince)
	}
	if s.Waiting > 0 {
		s.WaitingSince = time.UnixMilli(l.rec.queue[0].since)
	}
	return s
}

// Inspect implements lock.Inspector.
func (b *Backend) Inspect(ctx context.Context, key lock.Key) (lock.Detail, error) {
	if b.closed.Load() {
		return lock.Detail{}, lock.ErrClosing
	}
	ctx, cancel := context.WithTimeout(ctx, b.requestTimeout())
	defer cancel()
	d, err := b.inspect(ctx, key)
	if err != nil {
		return lock.Detail{}, b.inspectError(ctx, err)
	}
	return d, nil
}

func (b *Backend) inspect(ctx context.Context, key lock.Key) (lock.Detail, error) {
	stored, _ := storeKey(key)
	e, err := b.store.Get(ctx, stored)
	if err != nil {
		return lock.Detail{}, err
	}
	if e.Revision == 0 {
		return lock.Detail{State: lock.State{Key: key}, Fresh: true}, nil
	}
	l := inspect(stored, e)
	if l.err != nil {
		return lock.Detail{}, l.err
	}
	look := &inspection{b: b}
	if err := look.prune(ctx, l.rec); err != nil {
		return lock.Detail{}, err
	}
	var keys []uint64
	for _, h := range l.rec.holders {
		if h.expiring != 0 {
			keys = append(keys, h.expiring)
		}
	}
	remaining, err := b.store.Remaining(ctx, keys)
	if err != nil {
		return lock.Detail{}, err
	}
	left := make(map[uint64]time.Duration, len(keys))
	for i, key := range keys {
		left[key] = remaining[i]
	}
	l.expire(left)
	return l.detail(), nil
}

func (l *inspected) detail() lock.Detail {
	d := lock.Detail{State: l.state(), Fresh: l.rec.fresh && l.rec.idle(), Anonymous: l.rec.anonymous}
	for _, h := range l.rec.holders {
		d.Holders = append(d.Holders, lock.HolderDetail{
			Holder: lock.Holder{Name: h.name, Token: h.token, ExpiresIn: l.left[h.expiring]},
			Since:  time.UnixMilli(h.since),
		})
	}
	slices.SortFunc(d.Holders, func(x, y lock.HolderDetail) int { return cmp.Compare(x.Token, y.Token) })
	for _, t := range l.rec.queue {
		q := lock.QueueEntry{Count: t.places(), Named: t.named(), Since: time.UnixMilli(t.since)}
		if t.named() {
			for _, s := range t.waits {
				q.Gateways = append(q.Gateways, s.String())
			}
		} else {
			q.Gateways = []string{t.session.String()}
		}
		d.Queue = append(d.Queue, q)
	}
	return d
}
