package replicated

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// The calls to the store that a committer makes. Each lets go of its mutex.

// send sends a new swap.
func (c *committer) send() {
	c.oldest = time.Now() // of what comes from now on
	c.inFlight = c.session
	c.attempt()
}

// attempt makes one attempt of the swap in flight.
func (c *committer) attempt() {
	f := c.core.flight
	s := Swap{
		Key: c.key, Expect: f.expect, Value: f.value, Session: c.inFlight,
		Expiring: f.keys, Idle: f.writes(c.core.rec).idle(),
	}
	var res SwapResult
	started := time.Now()
	first := !f.doubt
	span := c.startSwap(f)
	err := c.call(func(ctx context.Context) (err error) {
		res, err = c.b.store.Swap(trace.ContextWithSpan(ctx, span), s)
		return err
	})
	took := time.Since(started)
	notApplied := errors.Is(err, ErrNotApplied)
	ended := errors.Is(err, ErrSessionEnded)
	fenced := errors.Is(err, ErrFenced)
	if notApplied && !f.doubt && !ended && !fenced && !errors.Is(err, ErrExpired) {
		c.core.fail(unavailable(err))
	}
	c.endSwap(span, f, swapOutcome(res, err, notApplied), took, first)
	settled := c.core.swapDone(res, err, notApplied)
	c.noteSettled(f)
	if ended {
		c.b.gateways.lost(s.Session)
	}
	switch {
	case fenced: // because of another lock: the next attempt is not
	case err != nil:
		c.backOff()
	case res.Applied:
		c.refusals = 0
		c.b.pace.took(took)
	case !settled:
		c.backOff()
	default:
		c.contended()
		if c.refusals++; c.refusals > 1 && !c.core.hasClaim() {
			c.pause(anyUpTo(min(2*c.b.pace.swap(), maxLinger)), nil)
		}
	}
}

// settle makes a further attempt to find out what became of a swap.
func (c *committer) settle() {
	switch {
	case c.core.needsFence():
		err := c.call(c.inFlight.Fence)
		if err != nil && !errors.Is(err, ErrSessionEnded) {
			c.backOff()
			return
		}
		c.core.fenceDone()
	case c.core.flight.expect == 0 && c.core.linear:
		c.read(nil) // fenced: the record tells
	default:
		c.attempt()
	}
}

// read reads the record, for the requests or to settle a swap.
func (c *committer) read(requests []*request) {
	var e Entry
	err := c.call(func(ctx context.Context) (err error) {
		e, err = c.b.store.Get(ctx, c.key)
		return err
	})
	if err != nil {
		c.refuseAll(requests, err)
		c.backOff()
		return
	}
	f := c.core.flight
	settled, _ := c.core.readDone(e, requests)
	c.noteSettled(f)
	if !settled {
		c.backOff()
	}
}

func swapOutcome(res SwapResult, err error, notApplied bool) string {
	switch {
	case err == nil && res.Applied:
		return swapApplied
	case err == nil:
		return swapRefused
	case notApplied:
		return swapFailed
	}
	return swapUnknown
}

// noteSettled counts a swap that was in doubt and is in flight no more.
func (c *committer) noteSettled(f *flight) {
	if f != nil && f.doubt && c.core.flight != f {
		m := c.b.meters
		m.settlements.Add(c.b.ctx, 1, m.ofVerdicts[f.found])
	}
}

// refuseAll answers requests that a failed read leaves without an answer, if
// the failure is not one of time: those have deadlines of their own.
func (c *committer) refuseAll(requests []*request, err error) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return
	}
	for _, r := range requests {
		if r.phase == pending && !r.flying && r.kind != giveBackRequest {
			c.core.drop(r, answer{err: unavailable(err)})
		}
	}
}

// backOff pauses after a failed call, whatever comes in: a store in trouble is
// not asked more often when more is asked of us.
func (c *committer) backOff() {
	d := c.b.requestTimeout() / 50
	c.pause(d/2+anyUpTo(d), nil)
}

// call makes one call to the store without the mutex. Two attempts fit in the
// time that a request has.
func (c *committer) call(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.b.ctx, c.b.requestTimeout()/2)
	defer cancel()
	c.mu.Unlock()
	err := f(ctx)
	c.mu.Lock()
	c.b.noteCall(err)
	if err != nil {
		c.stall = stall{} // what does not change may be what cannot be seen
	}
	return err
}
