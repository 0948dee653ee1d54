package replicated

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// anyUpTo is a random time, so that gateways do not act in step.
func anyUpTo(d time.Duration) time.Duration {
	return rand.N(d + 1) //nolint:gosec // Not a secret.
}

// pace is how long a swap takes lately.
type pace struct{ average atomic.Int64 }

func (p *pace) swap() time.Duration { return time.Duration(p.average.Load()) }

func (p *pace) took(d time.Duration) {
	last := p.average.Load()
	if last == 0 {
		last = int64(d)
	}
	p.average.Store(last + (int64(d)-last)/8) // a lost update makes no difference
}

// health knows whether the store answers, and tells the log when that changes.
type health struct {
	down     atomic.Bool
	watched  atomic.Bool  // awaitStore runs
	failedAt atomic.Int64 // when a call failed last, in Unix nanoseconds
}

// wellAgain is for how long no call may have failed before the log is told that
// the store answers again: a store may refuse some calls only.
const wellAgain = 3 * time.Second

// noteCall notes the outcome of a call to the store.
func (b *Backend) noteCall(err error) {
	if b.ctx.Err() != nil || errors.Is(err, ErrSessionEnded) || errors.Is(err, ErrExpired) || errors.Is(err, ErrFenced) {
		return
	}
	h := &b.health
	if err != nil {
		h.failedAt.Store(time.Now().UnixNano())
		if h.down.CompareAndSwap(false, true) {
			b.logger().Error("the lock store does not answer, or refuses; requests get 503 or 504 until it does", zap.Error(err))
			if b.health.watched.CompareAndSwap(false, true) {
				b.start(b.awaitStore)
			}
		}
		return
	}
	if h.down.Load() && time.Since(time.Unix(0, h.failedAt.Load())) >= wellAgain && h.down.CompareAndSwap(true, false) {
		b.logger().Info("the lock store answers again")
	}
}

// awaitStore asks the store for something that it has to write down, now and then,
// until it answers again: there may be no request that would find it out. It is a
// goroutine of the backend's.
func (b *Backend) awaitStore() {
	ticker := time.NewTicker(wellAgain / 2)
	defer ticker.Stop()
	defer b.health.watched.Store(false)
	for b.health.down.Load() {
		select {
		case <-ticker.C:
		case <-b.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(b.ctx, b.requestTimeout())
		key, err := b.store.NewExpiring(ctx, time.Second)
		cancel()
		if err == nil {
			b.store.Discard(key.ID)
		}
		b.noteCall(err)
	}
}

// noteEpoch tells the log, once, that the store is another one.
func (b *Backend) noteEpoch(epoch uint64) {
	if b.epoch.Swap(epoch) != epoch {
		b.logger().Warn("the lock store was restored from a backup, or made anew: locks are as it has them, and tokens may start lower")
	}
}
