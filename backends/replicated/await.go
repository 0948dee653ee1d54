package replicated

import (
	"context"
	"errors"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// A request's caller, from the moment it is submitted until it has its answer.
// The request goes its own way in the committer; the caller ends it.

// deliver lets the caller have the answer.
func (r *request) deliver() { close(r.delivered) }

// do carries out a request that does not wait for a slot.
func (b *Backend) do(ctx context.Context, key lock.Key, r *request) (answer, error) {
	if b.closed.Load() {
		return answer{}, lock.ErrClosing
	}
	c := b.use(key)
	defer c.unuse()
	traceRequest(ctx, r)
	c.submit(r)
	return b.finish(ctx, c, r, nil)
}

// await carries out an acquire, which may wait for a slot. When the wait is
// over it takes the commits needed to leave the queue, and the request timeout
// if the store is silent.
func (b *Backend) await(ctx context.Context, c *committer, r *request, wait time.Duration) (lock.AcquireResult, error) {
	traceRequest(ctx, r)
	if r.try {
		c.submit(r)
		a, err := b.finish(ctx, c, r, nil)
		return a.acquired, err
	}
	hurry := make(chan struct{})
	r.hurry = func() { close(hurry) }
	hasSession := c.submit(r)
	var timeout, patience <-chan time.Time
	if wait != lock.Forever {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		timeout = timer.C
	}
	if !hasSession {
		timer := time.NewTimer(b.requestTimeout())
		defer timer.Stop()
		patience = timer.C
	}
	var none error
	for waiting := true; waiting; {
		waiting = false
		select {
		case <-r.delivered:
		case <-timeout:
			c.leave(r, false)
		case <-patience:
			if c.withoutPlace(r) {
				a, err := c.giveUp(ctx, r)
				return a.acquired, err
			}
			waiting = true
		case <-hurry:
		case <-b.draining:
			none = lock.ErrClosing
			if c.leaveUnlessFlying(r) {
				return lock.AcquireResult{}, none
			}
		case <-ctx.Done():
		}
	}
	a, err := b.finish(ctx, c, r, none)
	return a.acquired, err
}

// withoutPlace reports whether a request got nowhere since there is no session.
func (c *committer) withoutPlace(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session == nil && r.phase == pending && !r.flying
}

// timer returns one that goes off after the request timeout. It goes back to b.timers,
// stopped: to make one is dearer than all else that the waiting for an answer costs.
func (b *Backend) timer() *time.Timer {
	timer, ok := b.timers.Get().(*time.Timer)
	if !ok {
		return time.NewTimer(b.requestTimeout())
	}
	timer.Reset(b.requestTimeout())
	return timer
}

// finish waits for the answer, at most for the request timeout. If the caller
// goes first, what the request took is undone before finish returns, or as soon
// as the store answers. None is the error instead of an acquire that took
// nothing.
func (b *Backend) finish(ctx context.Context, c *committer, r *request, none error) (answer, error) {
	timer := b.timer()
	defer func() {
		timer.Stop() // its channel is empty then
		b.timers.Put(timer)
	}()
	end := ctx.Done()
	if r.kind != acquireRequest {
		end = nil // it is being carried out: its outcome is worth knowing
	}
	for {
		select {
		case <-r.delivered:
			if r.gone && ctx.Err() != nil {
				return answer{}, ctx.Err()
			}
			if none != nil && r.answer.err == nil && !r.answer.acquired.Acquired {
				return answer{}, none
			}
			return r.answer, r.answer.err
		case <-end:
			end = nil
			c.leave(r, true)
		case <-timer.C:
			return c.giveUp(ctx, r)
		case <-b.ctx.Done():
			return c.giveUp(ctx, r)
		}
	}
}

// leave makes an acquire give up its place; see core.leave.
func (c *committer) leave(r *request, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.core.leave(r, gone)
	c.kick()
}

// leaveUnlessFlying makes an acquire that is in no swap give up its place, with
// nobody waiting for the answer. One in a swap may have been granted; it only
// gives up its place if not.
func (c *committer) leaveUnlessFlying(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := !r.flying && r.phase != done
	c.core.leave(r, out)
	c.kick()
	return out
}

// giveUp ends the wait for an answer. A request that is in no swap was
// certainly not carried out; but a give-back is, once the store answers.
func (c *committer) giveUp(ctx context.Context, r *request) (answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-r.delivered:
		if !r.gone {
			return r.answer, r.answer.err
		}
	default:
	}
	err := errSilent
	if r.flying && r.kind != valueRequest || r.phase == done || r.kind == giveBackRequest {
		err = lock.ErrOutcomeUnknown
	}
	if c.b.closed.Load() && errors.Is(err, errSilent) {
		err = lock.ErrClosing
	}
	switch {
	case r.phase == done:
		r.gone = true // a grant whose time is being started over
	case r.kind == acquireRequest || r.flying:
		c.core.leave(r, true)
	case r.kind != giveBackRequest:
		c.core.drop(r, answer{})
	}
	c.kick()
	if ctx.Err() != nil && r.kind == acquireRequest {
		err = ctx.Err()
	}
	return answer{}, err
}

// atRest returns a channel that is closed once the lock has nothing to do.
func (c *committer) atRest() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := make(chan struct{})
	if !c.running {
		close(rest)
	} else {
		c.resting = append(c.resting, rest)
	}
	return rest
}

// stop ends what the lock has besides run's goroutine.
func (c *committer) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopFollowing()
	if c.timer != nil {
		c.timer.Stop()
	}
}
