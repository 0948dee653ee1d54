package replicated

import (
	"fmt"
	"slices"

	"github.com/lockgateway/lockgateway/lock"
)

// core is what one gateway knows and wants of one lock, and all its decisions:
// which swap to make next, and what became of it. It does no I/O, knows no
// clock and starts nothing; committer.go moves data to and from it. So the
// tests drive this very code through every interleaving.
//
// Invariants: at most one swap is in flight, and what is learnt meanwhile
// waits; a request is in pending, in a run, or in named, or it is done.
type core struct {
	max    int64
	key    string // of the record in the store
	name   string // the lock's, if the key is a hash of it
	linear bool   // the store's reads are linearizable

	session SessionID // 0: there is none now

	known bool    // rec and rev are what the store has, or had lately
	rec   *record // nil: there is no record
	rev   uint64

	pending []*request // in the order of arrival
	runs    map[uint64]*run
	named   map[nameHash][]*request // queued, in the order of arrival
	leaving []*request              // queued, to be taken out of the queue

	flight *flight
	news   *Entry // the newest record seen while a swap was in flight
	broken error  // why the record cannot be read; nil: it can, or nobody tried

	// discards are expiring keys that no record names any more.
	discards []uint64
}

// run is the waiters of this gateway in one run of the record. Its live ones
// are as many as the record counts.
type run struct {
	generation generation
	waiters    []*request // in the order of arrival; done ones are passed over
	live       int
}

// flight is a swap that was sent and whose outcome is not known yet.
type flight struct {
	session  SessionID
	number   uint64 // of the batch
	expect   uint64
	created  uint64 // of the record that it writes, and of the one it expects
	next     *record
	value    []byte
	outcomes []outcome
	keys     []Expiring // that the record names if it is applied
	unnamed  []uint64   // keys that no record names any more if it is applied

	doubt    bool    // an attempt was made whose outcome is unknown
	found    verdict // what became of a swap in doubt, once it is settled
	fenced   bool    // no earlier attempt can be applied any more, if it is a create
	blocking bool    // value is the old record, to keep late attempts from being applied
}

// writes returns the record that an attempt writes; old is the one before.
func (f *flight) writes(old *record) *record {
	if f.blocking {
		return old
	}
	return f.next
}

func newCore(max int64, name string, linear bool) *core {
	return &core{max: max, name: name, linear: linear}
}

// add takes a request.
func (c *core) add(r *request) { c.pending = append(c.pending, r) }

// waiting reports whether requests are queued.
func (c *core) waiting() bool { return len(c.runs) > 0 || len(c.named) > 0 }

// idle reports whether there is nothing to do or to wait for.
func (c *core) idle() bool {
	return c.flight == nil && len(c.pending) == 0 && !c.waiting()
}

// leave makes a request give up its place; gone says that nobody waits for the
// answer any more. What comes of it is up to the swaps that follow. A request
// that is done keeps its answer.
func (c *core) leave(r *request, gone bool) {
	if r.phase == done {
		return
	}
	r.gone = r.gone || gone
	if r.flying && r.phase == pending {
		r.leaving = true
		return
	}
	if r.phase == pending {
		if gone {
			c.drop(r, answer{})
		} else {
			r.try = true // the record decides: this may be its turn
		}
		return
	}
	if !r.leaving {
		r.leaving = true
		if !r.flying {
			c.leaving = append(c.leaving, r)
		}
	}
}

// setSession makes the gateway one with another session, or with none. What was
// queued or asked for a place under an ended one is void, except what is in a
// swap in flight.
func (c *core) setSession(next SessionID) {
	last := c.session
	c.session = next
	if last == 0 {
		return
	}
	lost := answer{err: errPlaceLost}
	for _, r := range c.queuedRequests() {
		if r.flying {
			hurry(r)
			continue
		}
		c.unqueue(r)
		c.finish(r, lost)
	}
	for _, r := range slices.Clone(c.pending) {
		switch {
		case r.kind != acquireRequest:
		case !r.flying:
			c.drop(r, lost)
		default:
			hurry(r)
		}
	}
	c.leaving = slices.DeleteFunc(c.leaving, func(r *request) bool { return r.phase == done })
}

func hurry(r *request) {
	if r.hurry != nil {
		r.hurry()
		r.hurry = nil
	}
}

// drop answers a pending request that is in no swap.
func (c *core) drop(r *request, a answer) {
	c.pending = without(c.pending, r)
	c.discardKey(r)
	c.finish(r, a)
}

// onlyJoins reports whether there is nothing to do but to put new requests at
// the end of a queue, since all that is free belongs to others' tickets.
func (c *core) onlyJoins() bool {
	if !c.known || c.rec == nil || len(c.rec.queue) == 0 || len(c.leaving) > 0 || len(c.pending) == 0 {
		return false
	}
	if c.rec.waiting() < c.max-c.rec.held() || c.hasClaim() {
		return false
	}
	return !slices.ContainsFunc(c.pending, func(r *request) bool {
		return r.kind != acquireRequest || r.try || r.holder != "" && c.rec.holder(r.holder) != nil
	})
}

// queuedRequests lists them in no order.
func (c *core) queuedRequests() []*request {
	var list []*request
	for _, run := range c.runs {
		for _, r := range run.waiters {
			if r.phase == queued {
				list = append(list, r)
			}
		}
	}
	for _, waiters := range c.named {
		list = append(list, waiters...)
	}
	return list
}

// enqueue notes a place that the record has.
func (c *core) enqueue(r *request, id uint64, g generation) {
	r.phase, r.run, r.generation = queued, id, g
	if r.holder != "" {
		if c.named == nil {
			c.named = make(map[nameHash][]*request)
		}
		c.named[r.hash] = append(c.named[r.hash], r)
	} else {
		q := c.runs[id]
		if q == nil {
			if c.runs == nil {
				c.runs = make(map[uint64]*run)
			}
			q = &run{generation: g}
			c.runs[id] = q
		}
		q.waiters = append(q.waiters, r)
		q.live++
	}
	if r.leaving || r.gone {
		r.leaving = true
		c.leaving = append(c.leaving, r)
	}
}

// unqueue removes a queued request; the caller finishes it.
func (c *core) unqueue(r *request) {
	if r.holder != "" {
		if c.named[r.hash] = without(c.named[r.hash], r); len(c.named[r.hash]) == 0 {
			delete(c.named, r.hash)
		}
		return
	}
	q := c.runs[r.run]
	if q.live--; q.live == 0 {
		delete(c.runs, r.run)
		return
	}
	r.phase = done
	for q.waiters[0].phase == done {
		q.waiters[0] = nil
		q.waiters = q.waiters[1:]
	}
	if len(q.waiters) > 2*q.live+8 {
		q.waiters = slices.DeleteFunc(q.waiters, func(r *request) bool { return r.phase == done })
	}
}

// finish answers a request. A grant that nobody waits for is given back, and
// done once it is.
func (c *core) finish(r *request, a answer) {
	if r.gone && a.acquired.Acquired {
		g := giveBackOf(r, a.acquired)
		g.done, r.done = r.done, nil
		c.add(g)
		a = answer{}
	}
	r.phase, r.flying, r.answer = done, false, a
	if r.done != nil {
		r.done()
	}
}

// giveBackOf returns the request that undoes a grant.
func giveBackOf(r *request, res lock.AcquireResult) *request {
	return &request{kind: giveBackRequest, holder: r.holder, hash: r.hash, era: res.Mark, token: res.Token}
}

// discardKey lets go of a key that was prepared for a request and not used.
func (c *core) discardKey(r *request) {
	if r.key.ID != 0 {
		c.discards = append(c.discards, r.key.ID)
		r.key = Expiring{}
	}
}

// learn takes a record that the store has, or had. Current says that a read or
// a refused swap has just shown it, on a store where that cannot be old: only
// then is it believed that there is no record any more. A lower revision is old
// in any case, since news may overtake the answer to a read.
func (c *core) learn(e Entry, current bool) error {
	if c.flight != nil {
		if c.news == nil || e.Revision > c.news.Revision {
			c.news = &e
		}
		return nil
	}
	if c.known && e.Revision <= c.rev && (!current || e.Revision != 0) {
		return nil
	}
	rec, err := c.decode(e)
	if err != nil {
		return c.unreadable(err)
	}
	c.broken = nil
	c.known, c.rec, c.rev = true, rec, e.Revision
	c.resolveWaiters()
	return nil
}

func (c *core) decode(e Entry) (*record, error) {
	if e.Revision == 0 {
		return nil, nil
	}
	rec, err := decode(e.Value, e.Revision)
	if err == nil && rec.name != c.name {
		return nil, fmt.Errorf("%w: it is of another lock", errForeign)
	}
	return rec, err
}

// unreadable ends all requests: nothing may be done to such a record.
func (c *core) unreadable(err error) error {
	c.broken = err
	a := answer{err: &lock.RecordError{Key: c.key, Err: err}}
	for _, r := range c.queuedRequests() {
		c.unqueue(r)
		c.finish(r, a)
	}
	list := c.pending
	c.pending, c.leaving = nil, nil
	for _, r := range list {
		c.finish(r, a)
	}
	c.forget()
	return a.err
}

// forget drops what is known of the record.
func (c *core) forget() { c.known, c.rec, c.rev = false, nil, 0 }

// forgetEpoch drops what is known of a store that turned out to be another. It
// cannot tell what became of a swap in doubt.
func (c *core) forgetEpoch() {
	if c.flight != nil {
		c.abandon()
	}
	c.flight, c.news = nil, nil
	c.forget()
}

// resolveWaiters answers those whose place is not in the record any more. Whether
// this gateway's session has ended, and its places were pruned, the record alone
// tells for certain.
func (c *core) resolveWaiters() {
	lost := answer{err: errPlaceLost}
	for id, q := range c.runs {
		a := lost
		if c.rec != nil {
			switch {
			case c.rec.generation() == q.generation:
				if c.rec.runTicket(c.session, id) >= 0 {
					continue
				}
			case c.rec.created == q.generation.created:
				a = answer{} // reset
			}
		}
		for _, r := range slices.Clone(q.waiters) {
			if r.phase == queued {
				c.unqueue(r)
				c.finish(r, a)
			}
		}
	}
	for hash, waiters := range c.named {
		repeats := c.rec != nil && c.rec.holder(waiters[0].holder) != nil
		place := c.rec != nil && c.rec.sharesTicket(hash, c.session)
		for _, r := range slices.Clone(waiters) {
			a := lost
			switch {
			case c.rec == nil || c.rec.created != r.generation.created:
			case c.rec.resets != r.generation.resets:
				a = answer{}
			case repeats || place:
				continue
			case !c.rec.prunes(c.session):
				a = answer{} // withdrawn by a release; the name may have another ticket since
			}
			c.unqueue(r)
			c.finish(r, a)
		}
	}
	c.leaving = slices.DeleteFunc(c.leaving, func(r *request) bool { return r.phase == done })
}

// dropDone takes finished requests out of the lists.
func (c *core) dropDone() {
	isDone := func(r *request) bool { return r.phase == done }
	c.pending = slices.DeleteFunc(c.pending, isDone)
	c.leaving = slices.DeleteFunc(c.leaving, isDone)
}

func without(list []*request, r *request) []*request {
	return slices.DeleteFunc(list, func(other *request) bool { return other == r })
}
