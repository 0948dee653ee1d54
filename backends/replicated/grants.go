package replicated

import (
	"slices"

	"github.com/lockgateway/lockgateway/lock"
)

// The part of a batch that takes slots and places: repeats, claims, and new
// requests.

// repeatQueued answers queued requests of a holder that has its slot: it was
// granted to another gateway's request of that holder.
func (p *plan) repeatQueued() {
	if p.wasReset {
		return
	}
	for _, waiters := range p.core.named {
		for _, r := range waiters {
			if h := p.next.holder(r.holder); h != nil && !r.leaving {
				p.repeat(h, r)
			}
		}
	}
}

// repeat answers with the slot that the holder has.
func (p *plan) repeat(h *holder, r *request) {
	h.answers++
	h.waits = dropSession(h.waits, p.core.session)
	p.setKey(h, r)
	p.changed = true
	p.asking = append(p.asking, r)
	a := answer{acquired: lock.AcquireResult{Acquired: true, Value: p.next.held(), ExpiresIn: h.ttl}, repeat: true}
	if r.ttl <= 0 {
		a.key = h.expiring
	}
	p.outcomes = append(p.outcomes, outcome{request: r, what: isAnswered, holder: h.name, answer: a})
}

// setKey makes a grant expire as its request says. A key that it had is
// replaced, which starts its time over: a key is never written twice.
func (p *plan) setKey(h *holder, r *request) {
	if r.ttl <= 0 {
		return
	}
	if r.key.ID == 0 || p.tooOld(r) {
		p.keyless = append(p.keyless, r)
		return
	}
	if i := slices.IndexFunc(p.used, func(e Expiring) bool { return e.ID == h.expiring }); i >= 0 {
		p.used = slices.Delete(p.used, i, i+1) // of the same batch
	}
	p.drop(h.expiring)
	h.expiring, h.ttl = r.key.ID, r.key.TTL
	p.used = append(p.used, r.key)
}

// joinTickets lets named requests share the ticket that their holder has.
func (p *plan) joinTickets() {
	free := p.core.max - p.next.held()
	for _, r := range p.of(acquireRequest) {
		if r.holder == "" || p.next.holder(r.holder) != nil {
			continue
		}
		i := p.next.namedTicket(r.hash)
		if i < 0 {
			continue
		}
		if p.joined == nil {
			p.joined = make(map[*request]bool)
		}
		p.joined[r] = false
		if r.try {
			p.refuse(r, answer{})
			continue
		}
		if t := &p.next.queue[i]; !slices.Contains(t.waits, p.core.session) {
			if p.tooLarge(8) {
				p.refuse(r, answer{err: tooLarge})
				continue
			}
			t.waits = append(t.waits, p.core.session)
			p.changed = true
		}
		p.joined[r] = true
		if p.placesBefore(i) >= free {
			p.changed = true // it is queued, which only a swap makes true
			p.outcomes = append(p.outcomes, outcome{request: r, what: isQueued})
		}
	}
}

func (p *plan) placesBefore(i int) int64 {
	n := int64(0)
	for k := range p.next.queue[:i] {
		n += p.next.queue[k].places()
	}
	return n
}

// claim takes the free slots that this gateway's own tickets are entitled to:
// those belong to the first tickets of the queue, whoever owns them.
func (p *plan) claim() {
	p.room = p.core.max - p.next.held()
	for i := 0; i < len(p.next.queue) && p.room > 0; {
		t := &p.next.queue[i]
		used := false
		switch {
		case !t.named() && t.session == p.core.session:
			used = p.claimRun(t)
		case t.named() && slices.Contains(t.waits, p.core.session) && p.grants < grantsPerRevision:
			used = p.claimNamed(t)
		}
		if used {
			p.next.queue = slices.Delete(p.next.queue, i, i+1)
			continue
		}
		p.room -= t.places() // somebody else's, or all of ours that could be granted are
		i++
	}
	p.room = max(p.room, 0)
}

// claimRun grants the first waiters of an own run, as many as there are free
// slots. It reports whether the run is used up. Places that have no waiter are
// from swaps whose outcome was never known; they go.
func (p *plan) claimRun(t *ticket) (used bool) {
	p.changed = true
	if q := p.core.runs[t.run]; q != nil {
		for _, r := range q.waiters {
			if r.phase != queued || r.leaving {
				continue
			}
			if p.room == 0 {
				t.since = r.since
				return false
			}
			p.grantAnonymous(r)
			t.count--
		}
	}
	return true
}

// claimNamed grants a named ticket to all requests of its holder here. It
// reports whether the ticket is used up; it is not if nobody here waits, and
// others do.
func (p *plan) claimNamed(t *ticket) (used bool) {
	p.changed = true
	t.waits = dropSession(t.waits, p.core.session)
	var list []*request
	for _, r := range p.core.named[t.hash] {
		if !r.leaving {
			list = append(list, r)
		}
	}
	for _, r := range p.of(acquireRequest) {
		if p.joined[r] && r.hash == t.hash {
			list = append(list, r)
		}
	}
	if len(list) == 0 { // the share is from a swap whose outcome was never known
		return len(t.waits) == 0
	}
	p.grantNamed(list, t.waits)
	return true
}

func (p *plan) grantAnonymous(r *request) {
	p.next.takeAnonymous(p.now)
	p.changed = true
	p.room--
	p.answer(r, answer{acquired: lock.AcquireResult{Acquired: true, Value: p.next.held(), Mark: p.next.era()}})
}

// grantNamed gives one slot to all the requests, which are of one holder.
func (p *plan) grantNamed(list []*request, waits []SessionID) {
	h := p.next.takeNamed(list[0].holder, p.grants, p.now)
	h.grant = p.random + p.grants
	p.grants++
	p.room--
	h.waits = waits
	h.answers = uint64(len(list))
	for _, r := range list {
		p.setKey(h, r)
	}
	p.changed = true
	for _, r := range list {
		p.outcomes = append(p.outcomes, outcome{request: r, what: isAnswered, holder: h.name, answer: answer{
			acquired: lock.AcquireResult{Acquired: true, Value: p.next.held(), ExpiresIn: h.ttl},
		}})
	}
}

// acquire grants what is free to new requests, and puts the others at the end.
func (p *plan) acquire() {
	for _, r := range p.of(acquireRequest) {
		if _, ok := p.joined[r]; ok {
			continue
		}
		named := r.holder != ""
		if named {
			if h := p.next.holder(r.holder); h != nil {
				p.repeat(h, r)
				continue
			}
			if p.grants == grantsPerRevision {
				continue // the next batch has its turn
			}
		}
		need := 0
		switch {
		case named:
			need = holderSize(len(r.holder)) + 8
		case !p.next.endsWithRunOf(p.core.session):
			need = runSize
		}
		switch {
		case r.try && (p.room == 0 || len(p.next.queue) > 0):
			p.refuse(r, answer{}) // it would have to queue
		case named && p.next.namedTicket(r.hash) >= 0: // made by this batch
			p.queue(r, 0)
		case p.room > 0 && named && p.tooLarge(need):
			p.refuse(r, answer{err: tooLarge})
		case p.room > 0:
			if named {
				p.grantNamed([]*request{r}, nil)
			} else {
				p.grantAnonymous(r)
			}
		case r.maxWaiters > 0 && p.queueLength() >= r.maxWaiters:
			p.refuse(r, answer{err: &lock.LimitError{Limit: "max_waiters", Max: r.maxWaiters}})
		case p.tooLarge(need):
			p.refuse(r, answer{err: tooLarge})
		default:
			if p.waits >= 0 {
				p.waits++
			}
			p.queue(r, r.id)
		}
	}
}

// queue makes a place for a request.
func (p *plan) queue(r *request, run uint64) {
	p.changed = true
	if r.holder != "" {
		p.next.enqueueNamed(p.core.session, r.holder, r.hash, r.since)
	} else {
		run = p.next.enqueueRun(p.core.session, run, r.since)
	}
	p.outcomes = append(p.outcomes, outcome{request: r, what: isQueued, run: run})
}

func (p *plan) queueLength() int64 {
	if p.waits < 0 {
		p.waits = p.next.waiting()
	}
	return p.waits
}

// tooLarge reports whether the record has no room for so many bytes more, and
// counts them if it has.
func (p *plan) tooLarge(more int) bool {
	if p.size == 0 {
		p.size = p.next.size()
	}
	if p.size+more > maxRecordSize {
		return true
	}
	p.size += more
	return false
}
