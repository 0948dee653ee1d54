//go:build !race

package replicated

import (
	"fmt"
)

// What may become of the calls to the store.

// store is what may become of the call of a gateway.
func (m *mover) store(i int) {
	s := m.s
	g := s.gateways[i]
	fault := func(label string, f func(n *situation, g *gatewaySim)) {
		if s.left.faults > 0 {
			n := s.copy()
			n.left.faults--
			f(n, n.touch(i))
			m.emit(n, false, "FAULT "+label, i)
		}
	}
	answer := func(label string, f func(g *gatewaySim)) {
		n := s.copy()
		f(n.touch(i))
		m.emit(n, true, label, i)
	}
	switch g.call.kind {
	case noCall:
	case swapCall:
		m.swap(i)
	case getCall:
		m.soonOrLate(s, i, "g%d takes the record that was read", func(g *gatewaySim) { g.getAnswered(g.call.seen, nil) })
		fault("the read of g%d fails", func(_ *situation, g *gatewaySim) { g.getAnswered(stored{}, errLost) })
	case fenceCall:
		answer("the session of g%d is fenced", func(g *gatewaySim) {
			g.world.fence(g.core.flight.session)
			g.call = call{}
			g.core.fenceDone()
		})
		fault("fencing the session of g%d fails", func(_ *situation, g *gatewaySim) { g.call = call{} })
	case lookCall:
		answer("g%d hears of the keys it looked at", func(g *gatewaySim) { g.lookAnswered(nil) })
		fault("the look of g%d fails", func(_ *situation, g *gatewaySim) { g.lookAnswered(errLost) })
	case keyCall:
		answer("a key is made for g%d", func(g *gatewaySim) { g.keyMade(nil) })
		fault("g%d gets no key", func(_ *situation, g *gatewaySim) { g.keyMade(errLost) })
	case restartCall:
		if s.keys[g.requests[g.late[0]].key.ID] == ticking {
			answer("g%d starts the time of the key over", func(g *gatewaySim) { g.restarted(nil) })
		} else {
			answer("g%d finds that the key has run out", func(g *gatewaySim) { g.restarted(errKeyGone) })
		}
		fault("g%d cannot start the time of the key over", func(_ *situation, g *gatewaySim) { g.restarted(errLost) })
	}
}

// swap is what may become of the swap that a gateway has sent.
func (m *mover) swap(i int) {
	s := m.s
	g := s.gateways[i]
	w := g.asSent()
	switch g.call.answer {
	case unanswered:
		n := s.copy()
		ng := n.touch(i)
		switch err := s.certainly(&w); {
		case err != nil:
			ng.swapAnswered(SwapResult{}, err)
			m.emit(n, true, "the store cannot carry out the swap of g%d: %v", i, err)
			return
		case s.matches(&w):
			n.apply(&w)
			ng.call.answer, ng.call.revision = saysApplied, n.revision
			if s.quick() {
				m.applied(n, i)
				break
			}
			m.emit(n, true, "the store applies the swap of g%d as revision %d: %v", i, n.revision, n.store.rec)
		default:
			for _, seen := range s.shown() {
				n := s.copy()
				ng := n.touch(i)
				ng.call.answer, ng.call.seen = saysRefused, seen
				if s.quick() {
					ng.swapAnswered(SwapResult{Entry: seen.entry()}, nil)
				}
				m.emit(n, true, "the store refuses the swap of g%d and shows revision %d", i, seen.revision)
			}
		}
		if s.left.faults == 0 {
			return
		}
		n = s.copy()
		n.left.faults--
		if s.mayMatch(&w) {
			n.letters = append(n.letters, w)
		}
		n.touch(i).swapAnswered(SwapResult{}, errLost)
		m.emit(n, false, "FAULT the swap of g%d is delayed, and g%d in doubt", i, i)
		n = s.copy()
		n.left.faults--
		n.touch(i).swapAnswered(SwapResult{}, errCertain)
		m.emit(n, false, "FAULT the store fails the swap of g%d for certain", i)
	default:
		if g.call.answer == saysApplied {
			m.applied(s, i)
		} else {
			m.soonOrLate(s, i, "g%d hears that its swap was refused", func(g *gatewaySim) {
				g.swapAnswered(SwapResult{Entry: g.call.seen.entry()}, nil)
			})
		}
		if s.left.faults > 0 {
			n := s.copy()
			n.left.faults--
			n.touch(i).swapAnswered(SwapResult{}, errLost)
			m.emit(n, false, "FAULT the answer to g%d is lost", i)
		}
		if s.left.faults > 0 && s.sc.loose && g.call.answer == saysApplied && s.store.revision > w.expect {
			n := s.copy()
			n.left.faults--
			n.touch(i).swapAnswered(SwapResult{Entry: s.store.entry()}, nil)
			m.emit(n, false, "FAULT g%d hears first from a server that was deposed, which refuses the swap", i)
		}
	}
}

// applied: a gateway takes the answer that its swap was applied.
func (m *mover) applied(s *situation, i int) {
	revision := s.gateways[i].call.revision
	m.soonOrLate(s, i, fmt.Sprintf("g%%d hears that its swap was applied as revision %d", revision), func(g *gatewaySim) {
		g.swapAnswered(SwapResult{Applied: true, Entry: Entry{Revision: revision}}, nil)
	})
}

// soonOrLate is an answer that may tell of grants: those whose key is not new
// any more are late.
func (m *mover) soonOrLate(s *situation, i int, label string, f func(*gatewaySim)) {
	n := s.copy()
	f(n.touch(i))
	m.emit(n, true, label, i)
	if flight := s.gateways[i].core.flight; flight == nil || len(flight.keys) == 0 || s.left.expiries == 0 {
		return
	}
	n = s.copy()
	g := n.touch(i)
	g.slow = true
	f(g)
	g.slow = false
	m.emit(n, true, "late, "+label, i)
}
