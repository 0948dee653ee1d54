//go:build !race

package replicated

import "slices"

// The store of the explored world.

// asSent returns the swap that a gateway waits for.
func (g *gatewaySim) asSent() sent {
	f := g.core.flight
	w := sent{session: g.call.session, expect: f.expect, value: f.value, keys: f.keys}
	if f.blocking {
		return w
	}
	for _, o := range f.outcomes {
		e := effect{client: g.clientOf(o.request), run: o.run}
		switch a := o.answer; {
		case o.what == isQueued:
			e.kind = queues
		case o.what == hasLeft:
			e.kind = leaves
		case o.what == isValue:
			e.kind = tells
		case o.request.kind == giveBackRequest:
			e.kind = givesBack
		case o.request.kind == resetRequest:
			e.kind = resets
		case a.err != nil:
			e.kind = refuses
		case a.acquired.Acquired:
			e.kind = grants
		case a.released:
			e.kind = frees
		default:
			e.kind = denies
		}
		w.effects = append(w.effects, e)
	}
	if b := g.world.sc.broken.sent; b != nil {
		b(g, &w)
	}
	return w
}

func (g *gatewaySim) clientOf(r *request) int {
	if i := slices.Index(g.requests, r); i >= 0 {
		return i
	}
	if i := slices.Index(g.giveBacks, r); i >= 0 {
		return i
	}
	panic("a request of nobody is in a swap")
}

// matches reports whether a swap would be applied now.
func (s *situation) matches(w *sent) bool { return s.store.revision == w.expect }

// mayMatch reports whether a swap may be applied, now or later.
func (s *situation) mayMatch(w *sent) bool {
	return s.matches(w) || w.expect == 0 && (s.left.forgets > 0 || s.sc.broken.deleteIdle)
}

// certainly returns why a store with linearizable reads, such as etcd, will
// certainly not apply a swap: creates need a session, keys must not have run
// out. Others have no such rules.
func (s *situation) certainly(w *sent) error {
	if s.sc.loose {
		return nil
	}
	if w.expect == 0 && s.over.has(w.session) {
		return errOver
	}
	if s.matches(w) {
		for _, e := range w.keys {
			if s.keys[e.ID] != ticking {
				return errKeyGone
			}
		}
	}
	return nil
}

// readable returns the records that a read, an event or a refused swap may
// show.
func (s *situation) readable() []stored {
	if s.sc.stale && s.before.revision != s.store.revision {
		return []stored{s.store, s.before}
	}
	return []stored{s.store}
}

// shown returns the records that a refused swap may show.
func (s *situation) shown() []stored {
	if s.sc.loose {
		return s.readable()
	}
	return []stored{s.store}
}

// inDoubt reports whether a gateway does not know what became of its swap. No
// record is forgotten so soon after it was used.
func (s *situation) inDoubt() bool {
	return slices.ContainsFunc(s.gateways, func(g *gatewaySim) bool {
		return g.up && g.core.flight != nil && (g.core.flight.doubt || g.call.answer == saysApplied)
	})
}

// quick reports whether the answer of a swap may come with the swap itself:
// nothing that matters can come between.
func (s *situation) quick() bool {
	return s.left.faults == 0 && s.left.crashes == 0 && s.left.expiries == 0
}

// apply makes a swap the record.
func (s *situation) apply(w *sent) {
	old := s.store
	s.revision++
	rec, err := decode(w.value, s.revision)
	if err != nil {
		s.violate(unreadable, err.Error())
		return
	}
	s.before = old
	s.store = stored{w.value, s.revision, rec}
	s.committed(old.rec, rec, w)
	if s.sc.broken.deleteIdle && rec.idle() {
		s.before, s.store = s.store, stored{}
	}
	s.tidyLetters()
}

// forgetRecord deletes the record.
func (s *situation) forgetRecord() {
	s.before, s.store = s.store, stored{}
	s.observe()
	s.tidyLetters()
}

func (s *situation) tidyLetters() {
	if !s.sc.stale {
		s.before = stored{}
	}
	s.letters = slices.DeleteFunc(s.letters, func(w sent) bool { return !s.mayMatch(&w) || w.expect == 0 && !s.sc.loose && s.over.has(w.session) })
}

// fence keeps the creates of a session that are under way from being applied.
func (s *situation) fence(id SessionID) {
	if !s.sc.loose {
		s.letters = slices.DeleteFunc(s.letters, func(w sent) bool { return w.expect == 0 && w.session == id })
	}
}

// end ends a session.
func (s *situation) end(id SessionID) {
	s.over = s.over.with(id)
	s.tidyLetters()
}

// runOut ends an expiring key. Nobody believes any longer that it lives.
func (s *situation) runOut(id uint64) {
	s.keys[id] = runOut
	for i, g := range s.gateways {
		if g.up && g.life[id] == alive {
			s.touch(i).life[id] = unknownLife
		}
	}
	s.observe()
}

// crash ends a gateway. Its swap may still be under way.
func (s *situation) crash(i int) {
	g := s.gateways[i]
	for k, q := range s.sc.clients {
		c := &s.clients[k]
		if q.gateway != i {
			continue
		}
		if g.requests[k] != nil || g.giveBacks[k] != nil || c.status == isGranted {
			c.orphan = true
		}
		if c.status == waitsForAnswer || c.status == isGranted {
			c.status = gotNothing
		}
	}
	if g.call.kind == swapCall && g.call.answer == unanswered {
		if w := g.asSent(); s.mayMatch(&w) {
			s.letters = append(s.letters, w)
		}
	}
	s.gateways[i] = &gatewaySim{world: s, index: i}
	s.tidyLetters()
}
