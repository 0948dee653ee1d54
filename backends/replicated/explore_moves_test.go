//go:build !race

package replicated

import (
	"fmt"
	"slices"
	"strings"
)

// move is one thing that may happen next. Protocol moves need no client and no
// fault.
type move struct {
	next     *situation
	protocol bool
	label    string
}

// mover collects the moves of a situation.
type mover struct {
	s      *situation
	labels bool
	list   []move
}

// moves returns all that may happen in a situation.
func (s *situation) moves(labels bool) []move {
	m := &mover{s: s, labels: labels}
	for i := range s.clients {
		m.client(i)
	}
	for i, g := range s.gateways {
		if !g.up {
			if s.opened < s.sc.maxSessions() {
				n := s.copy()
				n.start(i)
				m.emit(n, false, "g%d starts again as session %d", i, n.opened)
			}
			continue
		}
		m.store(i)
		m.gateway(i)
	}
	m.world()
	return m.list
}

func (m *mover) emit(n *situation, protocol bool, label string, args ...any) {
	n.check()
	t := move{next: n, protocol: protocol}
	if m.labels {
		t.label = fmt.Sprintf(label, args...)
	}
	m.list = append(m.list, t)
}

// client is what a client may do.
func (m *mover) client(i int) {
	s, q, c := m.s, &m.s.sc.clients[i], &m.s.clients[i]
	g := s.gateways[q.gateway]
	if !g.up {
		return
	}
	if c.status == idleClient {
		if m.mayBeSent(i) {
			n := s.copy()
			g := n.touch(q.gateway)
			n.begins(i)
			r := n.newRequest(i, g)
			if b := s.sc.broken.request; b != nil {
				b(r)
			}
			g.requests[i] = r
			g.core.add(r)
			m.emit(n, false, "client %d: %v, to g%d", i, q, q.gateway)
		}
		return
	}
	r := g.requests[i]
	if c.status == isGranted {
		n := s.copy()
		n.clients[i].status = toldTrue
		m.emit(n, true, "g%d writes client %d: acquired:true, token %d", q.gateway, i, c.token)
		if s.left.gones > 0 {
			n := s.copy()
			n.left.gones--
			n.clients[i].status, n.clients[i].gone = wentAway, true
			g := n.touch(q.gateway)
			g.giveBacks[i] = n.newGiveBack(i, g)
			g.core.add(g.giveBacks[i])
			m.emit(n, false, "client %d is gone when g%d wants to write acquired:true", i, q.gateway)
		}
		return
	}
	if c.status != waitsForAnswer || r == nil {
		return
	}
	waits := q.kind == acquireRequest && r.phase != done
	if waits && s.left.gones > 0 {
		n := s.copy()
		n.left.gones--
		n.clients[i].status, n.clients[i].gone = wentAway, true
		g := n.touch(q.gateway)
		g.core.leave(g.requests[i], true)
		g.sweep()
		m.emit(n, false, "client %d goes away", i)
	}
	if waits && !q.try && !c.timedOut && s.left.timeouts > 0 {
		n := s.copy()
		n.left.timeouts--
		n.clients[i].timedOut = true
		g := n.touch(q.gateway)
		g.core.leave(g.requests[i], false)
		g.sweep()
		m.emit(n, false, "the wait of client %d is over", i)
	}
	if s.left.silences > 0 {
		n := s.copy()
		n.left.silences--
		n.touch(q.gateway).giveUp(i)
		m.emit(n, false, "g%d gives up on client %d: %d", q.gateway, i, map[status]int{told503: 503, told504: 504}[n.clients[i].status])
	}
}

// mayBeSent: equal requests are sent in order, since they are equal.
func (m *mover) mayBeSent(i int) bool {
	q := &m.s.sc.clients[i]
	for _, k := range q.after {
		if m.s.clients[k].status != toldTrue {
			return false
		}
	}
	for k := range i {
		if m.s.clients[k].status == idleClient && m.s.sc.clients[k].String() == q.String() && m.s.sc.clients[k].gateway == q.gateway &&
			slices.Equal(m.s.sc.clients[k].after, q.after) {
			return false
		}
	}
	return true
}

// gateway is what a gateway may do by itself, or hear of.
func (m *mover) gateway(i int) {
	s := m.s
	g := s.gateways[i]
	if g.call.kind == noCall && !g.rests && (len(g.late) > 0 || !g.core.idle()) {
		n := s.copy()
		ng := n.touch(i)
		did := ng.turn()
		if did == "" {
			g.rests = true
		} else {
			if m.labels && ng.call.kind == swapCall {
				did += " (" + describeFlight(ng) + ")"
			}
			m.emit(n, true, "g%d %s", i, did)
			if ng.call.kind == getCall && s.sc.loose && s.sc.stale && ng.call.seen.revision != s.before.revision {
				n := n.copy()
				n.touch(i).call.seen = s.before
				m.emit(n, true, "g%d %s, and gets an old record", i, did)
			}
		}
	}
	m.news(i)
	if g.call.kind == noCall && g.core.flight == nil && g.core.waiting() && g.core.rec != nil {
		var due []uint64
		for _, h := range g.core.rec.holders {
			if h.expiring != 0 && g.life[h.expiring] != expired && (s.keys[h.expiring] != ticking || s.sc.broken.keysLookGone) {
				due = append(due, h.expiring)
			}
		}
		if len(due) > 0 {
			n := s.copy()
			n.touch(i).look(due, nil)
			m.emit(n, true, "g%d looks at keys that are due", i)
		}
	}
	m.session(i)
	if s.left.crashes > 0 {
		n := s.copy()
		n.left.crashes--
		n.crash(i)
		m.emit(n, false, "CRASH of g%d", i)
	}
}

// news: the gateway is told of a record, or reads it since it waits.
func (m *mover) news(i int) {
	s := m.s
	g := s.gateways[i]
	if !g.core.known && g.core.flight == nil && !g.core.waiting() {
		return
	}
	for _, seen := range s.readable() {
		if seen.revision == 0 || g.core.known && seen.revision <= g.core.rev {
			continue
		}
		if g.core.flight != nil && (!s.sc.watch || g.core.news != nil && g.core.news.Revision >= seen.revision) {
			continue
		}
		n := s.copy()
		ng := n.touch(i)
		_ = ng.core.learn(seen.entry(), false)
		ng.sweep()
		m.emit(n, true, "g%d is told of revision %d", i, seen.revision)
	}
}

// session is what a gateway hears of sessions.
func (m *mover) session(i int) {
	s := m.s
	g := s.gateways[i]
	for id := SessionID(1); id <= s.opened; id++ {
		if g.heard.has(id) || !g.concerns(id) {
			continue
		}
		over := s.over.has(id)
		if !over && (s.left.lies == 0 || id == g.session) {
			continue
		}
		n := s.copy()
		ng := n.touch(i)
		ng.heard = ng.heard.with(id)
		if over {
			m.emit(n, true, "g%d hears that session %d has ended", i, id)
		} else {
			n.left.lies--
			n.doubted = n.doubted.with(id)
			m.emit(n, false, "LIE g%d hears that session %d has ended, which lives", i, id)
		}
	}
	switch {
	case g.session == 0 && s.opened < s.sc.maxSessions():
		n := s.copy()
		n.touch(i).renew()
		m.emit(n, true, "g%d opens session %d", i, n.opened)
	case g.session != 0 && s.over.has(g.session):
		n := s.copy()
		n.touch(i).lose()
		m.emit(n, true, "g%d learns that its session %d has ended", i, g.session)
	case g.session != 0 && s.left.ends > 0:
		n := s.copy()
		n.left.ends--
		n.end(g.session)
		m.emit(n, false, "session %d of g%d ends", g.session, i)
	}
}

// concerns reports whether it matters to a gateway if a session has ended.
func (g *gatewaySim) concerns(id SessionID) bool {
	if id == g.session {
		return true
	}
	r := g.core.rec
	if r == nil {
		return false
	}
	for _, t := range r.queue {
		if t.session == id || slices.Contains(t.waits, id) {
			return true
		}
	}
	return slices.ContainsFunc(r.holders, func(h holder) bool { return slices.Contains(h.waits, id) })
}

// world is what may happen without any gateway.
func (m *mover) world() {
	s := m.s
	for id := SessionID(1); id <= s.opened; id++ {
		lives := s.over.has(id)
		for _, g := range s.gateways {
			lives = lives || g.up && g.session == id
		}
		if !lives {
			n := s.copy()
			n.end(id)
			m.emit(n, true, "session %d, whose gateway is gone, ends", id)
		}
	}
	for k := range s.letters {
		if w := s.letters[k]; s.matches(&w) && s.certainly(&w) == nil {
			n := s.copy()
			n.letters = slices.Delete(n.letters, k, k+1)
			n.apply(&w)
			m.emit(n, false, "LATE the store applies an old swap of session %d, as revision %d: %v", w.session, n.revision, n.store.rec)
		}
	}
	if s.left.expiries > 0 {
		for id := uint64(1); id <= maxKeys; id++ {
			if s.keys[id] == ticking && s.refersTo(id) {
				n := s.copy()
				n.left.expiries--
				n.runOut(id)
				m.emit(n, false, "key %d runs out", id)
			}
		}
	}
	if s.left.forgets > 0 && s.store.rec != nil && s.store.rec.idle() && !s.inDoubt() {
		n := s.copy()
		n.left.forgets--
		n.forgetRecord()
		m.emit(n, false, "the store forgets the idle record")
	}
}

// describeFlight says what a swap is to do.
func describeFlight(g *gatewaySim) string {
	f := g.core.flight
	list := []string{fmt.Sprintf("number %d at revision %d", f.number, f.expect)}
	for _, e := range g.asSent().effects {
		list = append(list, fmt.Sprintf("client %d %v", e.client, e.kind))
	}
	if f.blocking {
		list = append(list, "the old record again")
	}
	return strings.Join(list, ", ")
}

// String shows what traces need.
func (r *record) String() string {
	if r == nil {
		return "{}"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{era %d.%d, held %d", r.resets, r.eras, r.anonymous)
	for _, h := range r.holders {
		fmt.Fprintf(&b, ", %s(token %d, answers %d, key %d, waits %v)", h.name, h.token, h.answers, h.expiring, h.waits)
	}
	for _, t := range r.queue {
		if t.named() {
			fmt.Fprintf(&b, ", queued name %v", t.waits)
		} else {
			fmt.Fprintf(&b, ", queued %d of session %d", t.count, t.session)
		}
	}
	return b.String() + "}"
}
