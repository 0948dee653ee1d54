package replicated

import (
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
	log  *zap.Logger
	down atomic.Bool
}

// noteCall notes the outcome of a call to the store.
func (b *Backend) noteCall(err error) {
	if b.ctx.Err() != nil || errors.Is(err, ErrSessionEnded) || errors.Is(err, ErrExpired) {
		return
	}
	h := &b.health
	if err == nil {
		if h.down.Load() && h.down.CompareAndSwap(true, false) {
			h.log.Info("the lock store answers again")
		}
		return
	}
	if h.down.CompareAndSwap(false, true) {
		h.log.Error("the lock store does not answer, or refuses; requests get 503 or 504 until it does", zap.Error(err))
	}
}
