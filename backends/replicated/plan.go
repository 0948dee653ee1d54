package replicated

import (
	"cmp"
	"slices"

	"github.com/lockgateway/lockgateway/lock"
)

// world is what a decision depends on besides the core.
type world struct {
	number uint64 // for the batch, if it is one: greater than any before in the session
	random uint64 // for a record that is created
	now    int64  // Unix milliseconds, for people
	ended  func(SessionID) bool
	life   func(key uint64) life

	// tooOld reports whether the key that was made for a request has run for
	// so long that the grant should have another one.
	tooOld func(*request) bool
}

// life is what is known of an expiring key.
type life uint8

const (
	unknownLife life = iota
	alive            // it had time left a moment ago
	expired          // it is gone for good
)

// step is what a core wants done next.
type step struct {
	kind     stepKind
	requests []*request // that the step is for
	keys     []uint64   // lookAtKeys
}

type stepKind uint8

const (
	nothing     stepKind = iota
	again                // requests were answered: plan again
	readRecord           // then call readDone
	lookAtKeys           // find out which of the keys are alive, then mark the requests
	prepareKeys          // make expiring keys for the requests
	sendSwap             // send core.flight, then call swapDone
)

// plan decides what to do next. The batch of a swap takes everything that is
// pending, in this order: give-backs, reset, releases, cancels, enqueues,
// claims.
func (c *core) plan(w world) step {
	if c.flight != nil || c.idle() {
		return step{}
	}
	if !c.known && (c.waiting() || !c.mayCreate()) {
		return step{kind: readRecord, requests: slices.Clone(c.pending)}
	}
	p := &plan{core: c, world: w, waits: -1}
	if c.rec != nil {
		p.next = c.rec.clone()
	} else {
		p.next = &record{name: c.name, created: w.random, fresh: true}
	}
	p.tidy()
	p.giveBack()
	p.reset()
	p.release()
	p.cancel()
	p.repeatQueued()
	p.joinTickets()
	p.claim()
	p.acquire()
	p.value()
	return p.decide()
}

// mayCreate reports whether it is worth guessing that there is no record: a
// lock is mostly acquired first. If the guess is wrong the swap is refused,
// and shows the record.
func (c *core) mayCreate() bool {
	return c.session != 0 && slices.ContainsFunc(c.pending, func(r *request) bool { return r.kind == acquireRequest })
}

// plan is a batch in the making: what it makes of the record, and of the
// requests.
type plan struct {
	core *core
	world
	next     *record
	changed  bool
	outcomes []outcome

	free     []uint64   // keys that the new record does not name any more
	used     []Expiring // keys that it names for the first time
	keyless  []*request // grants that need a key first
	asking   []*request // whose answers are as true as the keys are alive
	negative []*request // whose answers are as true as the record is new

	wasReset bool
	joined   map[*request]bool // pending acquires whose holder has a ticket; true: they share it
	grants   uint64            // named ones
	room     int64             // free slots that no ticket before the present one is entitled to
	waits    int64             // length of the queue; -1: not known
	size     int               // of the record; 0: not known
}

func (p *plan) answer(r *request, a answer) {
	p.outcomes = append(p.outcomes, outcome{request: r, what: isAnswered, answer: a})
}

// refuse answers with what is true only if the record is not older than the
// request.
func (p *plan) refuse(r *request, a answer) {
	p.answer(r, a)
	p.negative = append(p.negative, r)
	p.asking = append(p.asking, r)
}

func (p *plan) of(k kind) []*request {
	var list []*request
	for _, r := range p.core.pending {
		if r.kind == k {
			list = append(list, r)
		}
	}
	return list
}

// tidy drops the places of ended sessions and the slots of expired keys, if
// there is anything else to do or to wait for.
func (p *plan) tidy() {
	if p.next.prune(p.ended) {
		p.changed = true
	}
	for _, h := range slices.Clone(p.next.holders) {
		if h.expiring != 0 && p.life(h.expiring) == expired {
			p.next.expire(h.expiring)
			p.changed = true
		}
	}
}

func (p *plan) giveBack() {
	for _, r := range p.of(giveBackRequest) {
		held := p.next.holder(r.holder)
		var key uint64
		if r.holder != "" && held != nil {
			key = held.expiring
		}
		var found bool
		if r.holder == "" {
			found = p.next.giveBackAnonymous(r.era)
		} else if found = p.next.giveBackNamed(r.holder, r.token); found && p.next.holder(r.holder) == nil {
			p.drop(key)
		}
		if found {
			p.changed = true
			p.answer(r, answer{})
		} else {
			p.refuse(r, answer{})
		}
	}
}

func (p *plan) drop(key uint64) {
	if key != 0 {
		p.free = append(p.free, key)
	}
}

func (p *plan) reset() {
	list := p.of(resetRequest)
	if len(list) == 0 {
		return
	}
	if p.core.rec == nil {
		for _, r := range list {
			p.refuse(r, answer{}) // there is nothing to reset
		}
		return
	}
	for i := range p.next.holders {
		p.drop(p.next.holders[i].expiring)
	}
	p.next.reset()
	p.changed, p.wasReset = true, true
	for _, r := range list {
		p.answer(r, answer{})
	}
	for _, r := range p.core.queuedRequests() {
		if !r.leaving {
			p.answer(r, answer{})
		}
	}
}

func (p *plan) release() {
	for _, r := range p.of(releaseRequest) {
		before := len(p.next.queue)
		var released bool
		if r.holder == "" {
			released = p.next.releaseAnonymous()
		} else {
			if h := p.next.holder(r.holder); h != nil {
				p.drop(h.expiring)
			}
			released = p.next.releaseNamed(r.holder)
		}
		switch {
		case released:
			p.answer(r, answer{released: true})
		case len(p.next.queue) < before:
			p.answer(r, answer{})
		default:
			p.refuse(r, answer{})
			continue
		}
		p.changed = true
		if r.holder != "" {
			p.withdraw(r.hash)
		}
	}
}

// withdraw answers the queued requests here of a name that was released: their
// place is gone, also if the name gets another in this batch.
func (p *plan) withdraw(hash nameHash) {
	for _, r := range p.core.named[hash] {
		if !r.leaving {
			p.answer(r, answer{})
		}
	}
}

// cancel takes out the places of those that leave.
func (p *plan) cancel() {
	for _, r := range p.core.leaving {
		p.outcomes = append(p.outcomes, outcome{request: r, what: hasLeft})
		p.changed = true
		switch {
		case r.generation != p.next.generation():
		case r.holder == "":
			p.next.leaveRun(p.core.session, r.run, 1)
		case !slices.ContainsFunc(p.core.named[r.hash], func(other *request) bool { return !other.leaving }):
			p.next.leaveNamed(p.core.session, r.hash, r.holder)
		}
	}
	if len(p.core.leaving) > 0 {
		p.dateRuns()
	}
}

// dateRuns notes when the waiters came that are the first of their runs now.
func (p *plan) dateRuns() {
	for i := range p.next.queue {
		t := &p.next.queue[i]
		if t.named() || t.session != p.core.session || p.core.runs[t.run] == nil {
			continue
		}
		for _, r := range p.core.runs[t.run].waiters {
			if r.phase == queued && !r.leaving {
				t.since = r.since
				break
			}
		}
	}
}

func (p *plan) value() {
	for _, r := range p.of(valueRequest) {
		p.outcomes = append(p.outcomes, outcome{request: r, what: isValue})
		p.negative = append(p.negative, r)
		p.asking = append(p.asking, r)
	}
}

// decide says how to make the batch true.
func (p *plan) decide() step {
	c := p.core
	if len(p.outcomes) == 0 && !p.changed {
		return step{}
	}
	if keys := p.doubtfulKeys(); len(keys) > 0 {
		return step{kind: lookAtKeys, keys: keys, requests: p.asking}
	}
	if len(p.keyless) > 0 {
		return step{kind: prepareKeys, requests: p.keyless}
	}
	if !p.changed {
		if p.answerConfirmed() {
			return step{kind: again}
		}
		if c.linear || c.rec == nil && !slices.ContainsFunc(p.negative, func(r *request) bool { return r.kind != valueRequest }) {
			return step{kind: readRecord, requests: slices.Clone(c.pending)}
		}
	}
	if c.session == 0 {
		return step{}
	}
	p.next.numbered(c.session, p.number, p.ended)
	f := &flight{
		session: c.session, number: p.number, expect: c.rev, created: p.next.created,
		next: p.next, value: p.next.encode(), outcomes: p.outcomes, keys: p.used, unnamed: p.free,
	}
	for _, o := range f.outcomes {
		o.request.flying = true
	}
	c.flight = f
	return step{kind: sendSwap}
}

// doubtfulKeys returns the keys of the record that may have expired, if some
// answer depends on it.
func (p *plan) doubtfulKeys() []uint64 {
	var keys []uint64
	for i := range p.next.holders {
		key := p.next.holders[i].expiring
		ours := slices.ContainsFunc(p.used, func(e Expiring) bool { return e.ID == key })
		asked := func(r *request) bool { return !slices.Contains(r.looked, key) }
		if key != 0 && !ours && p.life(key) == unknownLife && slices.ContainsFunc(p.asking, asked) {
			keys = append(keys, key)
		}
	}
	return keys
}

// answerConfirmed answers those requests of a batch that changes nothing for
// which the record is new enough. It reports whether there were any.
func (p *plan) answerConfirmed() bool {
	any := false
	for _, o := range p.outcomes {
		if o.request.confirmed {
			any = true
			p.core.answered(o, p.core.rec)
		}
	}
	p.core.dropDone()
	return any
}

// describe fills in the value of a record; nil is a lock that nobody knows.
func (a *answer) describe(r *record) {
	if r == nil || r.fresh && r.held() == 0 {
		a.value = lock.Value{Fresh: true}
		return
	}
	a.value = lock.Value{Held: r.held(), Waiting: r.waiting()}
	holders := slices.Clone(r.holders)
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(a.token, b.token) })
	for i := range holders {
		h := &holders[i]
		a.value.Holders = append(a.value.Holders, lock.Holder{Name: h.name, Token: h.token, ExpiresIn: h.ttl})
		a.keys = append(a.keys, h.expiring)
	}
}
