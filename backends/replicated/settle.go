package replicated

import (
	"errors"
	"slices"

	"github.com/lockgateway/lockgateway/lock"
)

// What becomes of a swap.
//
// A swap whose outcome is unknown may still be applied later, so reading does
// not settle it. The identical swap is sent again: of the two only one can be
// applied. What decides is a record newer than the one that the swap expects:
// it shows the batch number if the swap was applied. A create expects that
// there is no record, which may come true again; so no create is judged before
// the session has fenced off its earlier attempts.

// verdict is what a record says about a swap in doubt.
type verdict uint8

const (
	proves      verdict = iota // nothing
	applied                    // the swap was applied
	refused                    // it was not, and never will be
	undecidable                // it may have been; nobody will ever know
)

// swapDone takes the store's answer to the swap in flight: res counts if err is
// nil, and notApplied says what err means. It reports whether the swap is
// settled; if not, it has to be sent again (see needsFence).
func (c *core) swapDone(res SwapResult, err error, notApplied bool) (settled bool) {
	f := c.flight
	switch {
	case err == nil && res.Applied && f.blocking:
		// The old record stands at a new revision, so no attempt can be applied.
		c.rec.resolve(res.Entry.Revision)
		c.rev = res.Entry.Revision
		f.found = refused
		c.notApplied(false)
		c.settled(nil, false)
		return true
	case err == nil && res.Applied:
		f.found = applied
		c.land(res.Entry.Revision)
		c.settled(nil, false)
		return true
	case err == nil && res.Entry.Revision == 0 && f.expect != 0 && f.doubt:
		c.abandon() // the record is gone, and what it told with it
		c.settled(nil, false)
		return true
	case err == nil:
		return c.refusedWith(res.Entry, c.linear)
	case notApplied && !f.doubt:
		c.notApplied(false)
		c.settled(nil, false)
		return true
	case !notApplied:
		f.doubt, f.fenced = true, false
	case errors.Is(err, ErrExpired) && f.expect != 0:
		// It cannot be sent again, and must be kept from being applied late.
		f.blocking, f.value, f.keys = true, c.rec.encode(), nil
	}
	return c.judgeNews()
}

// needsFence reports whether the session must be fenced before the swap in
// flight is judged or sent again.
func (c *core) needsFence() bool { return c.flight.doubt && c.flight.expect == 0 && !c.flight.fenced }

// fenceDone notes that the session is fenced, or has ended.
func (c *core) fenceDone() { c.flight.fenced = true }

// readDone takes a record that was read for the requests, or to settle a swap
// in doubt. It reports whether nothing is in flight any more.
func (c *core) readDone(e Entry, requests []*request) (settled bool, err error) {
	if f := c.flight; f != nil {
		if c.judge(f, e) == proves {
			return c.judgeNews(), nil
		}
		return c.refusedWith(e, c.linear), nil
	}
	err = c.learn(e, c.linear)
	for _, r := range requests {
		if c.linear || e.Revision == 0 && r.kind == valueRequest {
			r.confirmed = true
		}
	}
	return true, err
}

// refusedWith takes the record that the store has instead of the one that the
// swap in flight expects. Current says that it is as new as the swap.
func (c *core) refusedWith(e Entry, current bool) (settled bool) {
	f := c.flight
	v := refused
	// Where reads may be old a refusal may be, too: that of a server which does not
	// decide any more, while another one applied the swap. The record tells.
	if f.doubt || !c.linear && c.judge(f, e) == applied {
		v = c.judge(f, e)
		f.found = v
	}
	switch v {
	case proves:
		return c.judgeNews()
	case applied:
		c.landUnseen(e)
	case refused:
		c.notApplied(current)
	case undecidable:
		c.abandon()
	}
	c.settled(&e, current)
	if c.known && c.rev == f.expect {
		c.forget() // the store has another one, whatever it has just shown
	}
	return true
}

// judge says what a record, perhaps an old one, tells about a swap in doubt.
func (c *core) judge(f *flight, e Entry) verdict {
	if e.Revision == 0 {
		switch {
		case !c.linear || f.expect == 0 && !f.fenced:
			return proves
		case f.expect == 0:
			return refused
		}
		return undecidable // forgotten since, or the store is another one
	}
	if e.Revision <= f.expect {
		return proves
	}
	rec, err := c.decode(e)
	if err != nil {
		return undecidable
	}
	switch number := rec.batchOf(f.session); {
	case number >= f.number:
		return applied
	case f.expect == 0 && !f.fenced:
		return proves
	case number > 0 || f.expect == 0:
		return refused
	case rec.created == f.created && len(rec.batches) < keptBatches: // no number was dropped yet
		return refused
	}
	return undecidable
}

// judgeNews tries to settle a swap in doubt by a record that was followed.
func (c *core) judgeNews() bool {
	if c.news == nil || !c.flight.doubt || c.judge(c.flight, *c.news) == proves {
		return false
	}
	return c.refusedWith(*c.news, false)
}

// settled ends the flight: what was learnt meanwhile counts now.
func (c *core) settled(e *Entry, current bool) {
	news := c.news
	c.flight, c.news = nil, nil
	if c.known {
		c.resolveWaiters()
	}
	if e != nil {
		_ = c.learn(*e, current) // an error has answered the requests
	}
	if news != nil {
		_ = c.learn(*news, false)
	}
}

// land makes the flight's record the known one, at the revision at which the
// swap was applied, and its outcomes true.
func (c *core) land(revision uint64) {
	f := c.flight
	f.next.resolve(revision)
	c.known, c.rec, c.rev = true, f.next, revision
	c.deliver(f.next)
}

// landUnseen is land where the revision is not known, since the answer was
// lost: e is the record that shows it, and may be later. It has the tokens.
func (c *core) landUnseen(e Entry) {
	f := c.flight
	later, err := c.decode(e)
	if err != nil || later == nil {
		c.abandon()
		return
	}
	for i := range f.next.holders {
		if h := &f.next.holders[i]; h.token == 0 {
			if kept := later.holder(h.name); kept != nil && kept.grant == h.grant {
				h.token = kept.token
			}
		}
	}
	c.forget()
	c.deliver(f.next)
}

// deliver makes the outcomes of the flight true. rec is the record it made.
func (c *core) deliver(rec *record) {
	f := c.flight
	c.discards = append(c.discards, f.unnamed...)
	c.pending = slices.DeleteFunc(c.pending, func(r *request) bool { return r.flying })
	for _, o := range f.outcomes {
		r := o.request
		r.flying = false
		if o.what == isQueued {
			c.discardKey(r)
			if f.session != c.session {
				c.finish(r, answer{err: errPlaceLost})
				continue
			}
			c.enqueue(r, o.run, rec.generation())
			if r.placed != nil {
				r.placed(rec.waiting())
			}
			continue
		}
		c.answered(o, rec)
	}
	c.dropDone()
}

// answered finishes the request of an outcome that has come true. The caller
// drops it from the lists.
func (c *core) answered(o outcome, rec *record) {
	r := o.request
	if r.phase == queued {
		c.unqueue(r)
	}
	a := o.answer
	if o.what == isValue {
		a.describe(rec)
	}
	uses := uint64(0) // the key that the slot has
	if o.holder != "" {
		if h := rec.holder(o.holder); h != nil && h.token != 0 {
			a.acquired.Token, uses = h.token, h.expiring
		} else {
			// Committed, and ended by somebody before its token was known: the
			// holder was released, or the lock was reset, or it expired.
			a = answer{}
			if h != nil && h.expiring != 0 {
				a.err = errSlotExpired
			}
		}
	}
	if r.key.ID != uses {
		c.discardKey(r)
	}
	c.finish(r, a)
}

// notApplied makes the requests of the flight as if it had not been sent. What
// they were shown counts as new if confirmed is set.
func (c *core) notApplied(confirmed bool) {
	f := c.flight
	for _, o := range f.outcomes {
		r := o.request
		r.flying = false
		r.confirmed = r.confirmed || confirmed
		c.discardKey(r) // it may be too old for another try
		switch {
		case r.phase == pending && r.gone && r.kind != giveBackRequest:
			c.finish(r, answer{})
		case r.phase == pending && r.leaving:
			r.try = true
		case r.phase == queued && f.session != c.session:
			c.unqueue(r)
			c.finish(r, answer{err: errPlaceLost})
		case r.phase == queued && r.leaving && o.what != hasLeft:
			c.leaving = append(c.leaving, r)
		}
	}
	c.dropDone()
	if f.expect == 0 {
		c.forget() // the guess that there is no record was wrong, or is untested
	}
}

// abandon answers the requests of a flight that cannot be settled.
func (c *core) abandon() {
	c.flight.found = undecidable
	for _, o := range c.flight.outcomes {
		r := o.request
		if r.phase == queued {
			c.unqueue(r)
		}
		c.discardKey(r)
		c.finish(r, answer{err: lock.ErrOutcomeUnknown})
	}
	c.dropDone()
	c.forget()
}

// fail answers the requests of a flight that the store refuses for a reason
// that trying again does not cure. Queued ones keep their place, and what must
// be given back stays pending.
func (c *core) fail(err error) {
	for _, o := range c.flight.outcomes {
		if r := o.request; r.phase == pending && r.kind != giveBackRequest {
			c.discardKey(r)
			c.finish(r, answer{err: err})
		}
	}
	c.dropDone()
}
