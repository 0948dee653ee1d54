//go:build !race

package replicated

import (
	"slices"
)

// Copies of a situation. A core reaches a request from several places.

// copy returns a situation that shares gateways only.
func (s *situation) copy() *situation {
	n := *s
	n.letters = slices.Clone(s.letters)
	n.keys = slices.Clone(s.keys)
	n.clients = slices.Clone(s.clients)
	n.gateways = slices.Clone(s.gateways)
	n.ghosts = s.ghosts.copy()
	return &n
}

// touch makes a gateway one that may be changed in this situation.
func (s *situation) touch(i int) *gatewaySim {
	if g := s.gateways[i]; g.world == s && g.mark == nil {
		return g
	}
	s.gateways[i] = s.gateways[i].copy(s)
	return s.gateways[i]
}

// gatewayCopier maps requests to their copies.
type gatewayCopier struct {
	to       *gatewaySim
	old, new []*request
}

func (g *gatewaySim) copy(world *situation) *gatewaySim {
	n := *g
	n.world, n.rests, n.mark = world, false, nil
	n.late = slices.Clone(g.late)
	m := gatewayCopier{to: &n}
	n.requests = m.list(g.requests)
	n.giveBacks = m.list(g.giveBacks)
	for i := range n.requests {
		m.own(n.requests[i], i)
		m.own(n.giveBacks[i], i)
	}
	n.call.requests = m.list(g.call.requests)
	if g.core != nil {
		n.core = m.core(g.core)
	}
	return &n
}

// own makes the answer of a request the gateway's.
func (m *gatewayCopier) own(r *request, i int) {
	if r == nil {
		return
	}
	if r.done != nil {
		r.done = m.to.doneOf(i)
	}
	if r.hurry != nil {
		r.hurry = func() {}
	}
}

func (m *gatewayCopier) request(r *request) *request {
	if r == nil {
		return nil
	}
	if i := slices.Index(m.old, r); i >= 0 {
		return m.new[i]
	}
	n := *r
	m.old, m.new = append(m.old, r), append(m.new, &n)
	return &n
}

func (m *gatewayCopier) list(list []*request) []*request {
	if list == nil {
		return nil
	}
	n := make([]*request, len(list), len(list)+1)
	for i, r := range list {
		n[i] = m.request(r)
	}
	return n
}

func (m *gatewayCopier) core(c *core) *core {
	n := *c
	if c.rec != nil {
		n.rec = c.rec.clone()
	}
	n.pending, n.leaving = m.list(c.pending), m.list(c.leaving)
	n.runs = make(map[uint64]*run, len(c.runs))
	for id, q := range c.runs {
		n.runs[id] = &run{generation: q.generation, waiters: m.list(q.waiters), live: q.live}
	}
	n.named = make(map[nameHash][]*request, len(c.named))
	for h, list := range c.named {
		n.named[h] = m.list(list)
	}
	n.discards = slices.Clone(c.discards)
	if c.flight != nil {
		f := *c.flight
		f.next = f.next.clone()
		f.outcomes = slices.Clone(f.outcomes)
		for i := range f.outcomes {
			f.outcomes[i].request = m.request(f.outcomes[i].request)
		}
		n.flight = &f
	}
	return &n
}

// doneOf returns what is called when a request of a client is done.
func (g *gatewaySim) doneOf(i int) func() {
	return func() {
		if g.naming {
			g.named = i
			return
		}
		g.answered(i)
	}
}
