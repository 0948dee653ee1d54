//go:build !race

package replicated

import (
	"slices"
)

// The explorer drives the product's own core through every interleaving of a
// small world: a store register with swaps that get lost, late or doubled,
// gateways with sessions, clients. Nothing of the protocol is written here a
// second time; explore_drive_test.go does what committer.go does, one call to
// the store at a time.

// situation is the world at one moment. It is copied before it is changed;
// gateways are shared between copies until touch.
type situation struct {
	sc *scenario

	store    stored
	before   stored // what an old read shows
	revision uint64 // of the last swap applied
	letters  []sent // swaps that may still be applied, and whose answer nobody hears
	keys     []keyState
	over     sessions  // that have ended
	opened   SessionID // the last session

	gateways []*gatewaySim
	clients  []client
	left     budget
	ghosts
}

// stored is a record in the store; revision 0 is none.
type stored struct {
	value    []byte
	revision uint64
	rec      *record // what value says
}

func (e stored) entry() Entry { return Entry{Value: e.value, Revision: e.revision} }

// sent is a swap as the store sees it, and what it makes of the clients.
type sent struct {
	session SessionID
	expect  uint64
	value   []byte
	keys    []Expiring
	effects []effect
}

// keyState is what has become of an expiring key.
type keyState uint8

const (
	noKey keyState = iota
	ticking
	runOut
	discarded
)

// sessions is a set of session ids, which are small here.
type sessions uint16

func (s sessions) has(id SessionID) bool { return s>>id&1 == 1 }
func (s sessions) with(ids ...SessionID) sessions {
	for _, id := range ids {
		s |= 1 << id
	}
	return s
}

// budget is how often something out of the ordinary may still happen.
type budget struct {
	faults   uint8 // answers lost, swaps delayed, calls that fail
	crashes  uint8
	ends     uint8 // sessions of live gateways that end
	gones    uint8 // clients that go away
	timeouts uint8 // waits that are over
	silences uint8 // clients answered 503 or 504 since the store is silent
	lies     uint8 // live sessions that are taken for ended
	expiries uint8
	forgets  uint8 // idle records that the store forgets
}

// gatewaySim is one gateway: a core and what its committer knows. Once it is
// part of an explored situation it does not change.
type gatewaySim struct {
	world *situation // the one that touched it
	index int

	up      bool
	core    *core
	session SessionID
	number  uint64   // of the last swap
	heard   sessions // that it takes for ended
	life    [maxKeys + 1]life
	call    call
	late    []int // clients with a grant whose key is restarted first

	requests  []*request // of each client: what the core has, or nil
	giveBacks []*request // of each client's grant

	slow   bool // the answer that is being taken comes after the keys' slack
	naming bool // done closures report their client in named
	named  int

	rests bool    // plan wants nothing
	mark  *marked // its part of the situation's identity, once it was needed
}

const maxKeys = 6

// call is the call to the store that a gateway waits for.
type call struct {
	kind     callKind
	session  SessionID // swap: under which it is sent
	answer   callAnswer
	revision uint64 // swap: at which it was applied
	seen     stored // get; swap: the record that refused it
	requests []*request
	keys     []uint64
	gone     []bool // look: of the keys
}

type callKind uint8

const (
	noCall callKind = iota
	swapCall
	getCall
	fenceCall
	lookCall
	keyCall
	restartCall
)

type callAnswer uint8

const (
	unanswered callAnswer = iota
	saysApplied
	saysRefused
)

func (s spec) String() string {
	t := []string{acquireRequest: "acquire", giveBackRequest: "give back", releaseRequest: "release", valueRequest: "value", resetRequest: "reset"}[s.kind]
	if s.try {
		t = "try-" + t
	}
	switch {
	case s.ttl:
		t += "(" + s.holder + ", ttl)"
	case s.holder != "":
		t += "(" + s.holder + ")"
	}
	return t
}

// begin returns the first situation of a scenario.
func (sc *scenario) begin() *situation {
	s := &situation{sc: sc, left: sc.left, clients: make([]client, len(sc.clients)), keys: make([]keyState, maxKeys+1)}
	s.released = make([]uint64, len(sc.clients))
	for i := range sc.gatewayCount() {
		s.gateways = append(s.gateways, &gatewaySim{world: s, index: i})
		s.start(i)
	}
	return s
}

// start starts a gateway with an empty core and a session of its own.
func (s *situation) start(i int) {
	s.opened++
	g := &gatewaySim{world: s, index: i, up: true, session: s.opened}
	g.core = newCore(s.sc.max, "", !s.sc.loose)
	g.core.session = g.session
	g.requests = make([]*request, len(s.clients))
	g.giveBacks = make([]*request, len(s.clients))
	s.gateways[i] = g
}

// newKey returns an id that nothing refers to.
func (s *situation) newKey() uint64 {
	for id := uint64(1); id <= maxKeys; id++ {
		if s.keys[id] == noKey || !s.refersTo(id) {
			s.keys[id] = ticking
			for i := range s.clients {
				s.clients[i].ranOut &^= 1 << id
			}
			for i, g := range s.gateways {
				if g.up && g.life[id] != unknownLife {
					s.touch(i).life[id] = unknownLife
				}
			}
			return id
		}
	}
	panic("too many keys")
}

// refersTo reports whether anything in the world still names a key.
func (s *situation) refersTo(id uint64) bool {
	in := func(r *record) bool {
		return r != nil && slices.ContainsFunc(r.holders, func(h holder) bool { return h.expiring == id })
	}
	if in(s.store.rec) || in(s.before.rec) {
		return true
	}
	for _, l := range s.letters {
		if slices.ContainsFunc(l.keys, func(e Expiring) bool { return e.ID == id }) {
			return true
		}
	}
	for _, g := range s.gateways {
		if !g.up {
			continue
		}
		c := g.core
		if in(c.rec) || in(g.call.seen.rec) || slices.Contains(g.call.keys, id) || slices.Contains(c.discards, id) ||
			c.flight != nil && (in(c.flight.next) || slices.Contains(c.flight.unnamed, id)) {
			return true
		}
		for _, r := range g.requests {
			if r != nil && r.key.ID == id {
				return true
			}
		}
		if c.news != nil {
			if rec, err := decode(c.news.Value, c.news.Revision); err == nil && in(rec) {
				return true
			}
		}
	}
	return false
}
