//go:build !race

package replicated

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
)

// Two situations are the same if nothing that may still happen tells them
// apart. Revisions, tokens, batch numbers and the like matter by their order
// only, so each is replaced by its rank among those that are still around.

// marked is a part of a situation's identity.
type marked struct {
	b     []byte
	ranks []uint64 // in the order in which they come; see rankOf
}

// rankOf is a value that counts by its rank among those of its space.
func rankOf(space uint8, v uint64) uint64 { return uint64(space)<<58 | v }

const (
	revisions uint8 = iota
	tokens
	creations
	eras
	generations
	orders
	grantIDs
	numbers // and the session

	maxSpaces = 13 // of numbers
)

type identity [2]uint64

func (m *marked) num(values ...uint64) {
	for _, v := range values {
		m.b = binary.AppendUvarint(m.b, v)
	}
}

func (m *marked) yes(values ...bool) {
	v := uint64(0)
	for _, y := range values {
		v <<= 1
		if y {
			v |= 1
		}
	}
	m.num(v)
}

func (m *marked) text(t string) {
	m.num(uint64(len(t)))
	m.b = append(m.b, t...)
}

func (m *marked) rank(space uint8, v uint64) { m.ranks = append(m.ranks, rankOf(space, v)) }

// number is the number of a batch.
func (m *marked) number(s SessionID, v uint64) { m.rank(numbers+uint8(s), v) }

// era is a mark: the lower bits count eras.
func (m *marked) era(v uint64) {
	m.rank(creations, v>>16)
	m.rank(eras, v&0xffff)
}

func (m *marked) sessions(list []SessionID) {
	m.num(uint64(len(list)))
	for _, s := range list {
		m.num(uint64(s))
	}
}

func (m *marked) record(r *record) {
	m.yes(r != nil)
	if r == nil {
		return
	}
	m.yes(r.fresh, r.busySince != 0)
	m.era(r.created)
	m.rank(eras, r.eras)
	m.rank(generations, r.resets)
	m.num(uint64(r.anonymous), uint64(len(r.holders)), uint64(len(r.queue)), uint64(len(r.batches)))
	for i := range r.holders {
		h := &r.holders[i]
		m.text(h.name)
		m.rank(tokens, h.token)
		m.rank(grantIDs, h.grant)
		m.num(h.index, h.answers, h.expiring)
		m.sessions(h.waits)
	}
	for i := range r.queue {
		t := &r.queue[i]
		m.num(t.run, uint64(t.session), uint64(t.count), uint64(t.hash[0]))
		m.sessions(t.waits)
	}
	for _, b := range r.batches {
		m.num(uint64(b.session))
		m.number(b.session, b.number)
		m.yes(b.pruned)
	}
}

func (m *marked) stored(e stored) {
	m.rank(revisions, e.revision)
	m.record(e.rec)
}

func (m *marked) request(r *request) {
	m.yes(r != nil)
	if r == nil {
		return
	}
	m.yes(r.try, r.flying, r.leaving, r.gone, r.confirmed)
	m.num(uint64(len(r.looked)))
	m.num(r.looked...)
	m.num(uint64(r.kind), uint64(r.phase), r.run, r.key.ID)
	m.era(r.generation.created)
	m.rank(generations, r.generation.resets)
	m.era(r.era)
	m.rank(tokens, r.token)
	if r.phase == done {
		m.answer(&r.answer)
	}
}

func (m *marked) answer(a *answer) {
	m.yes(a.acquired.Acquired, a.released, a.err != nil)
	m.num(uint64(a.acquired.Value), a.key)
	m.yes(a.repeat)
	m.rank(tokens, a.acquired.Token)
	m.era(a.acquired.Mark)
}

// gateway is a gateway's part.
func (g *gatewaySim) identity() *marked {
	if g.mark != nil {
		return g.mark
	}
	m := &marked{}
	g.mark = m
	m.yes(g.up)
	if !g.up {
		return m
	}
	m.num(uint64(g.session), uint64(g.heard), uint64(len(g.late)))
	m.number(g.session, g.number)
	for _, i := range g.late {
		m.num(uint64(i))
	}
	for _, l := range g.life {
		m.num(uint64(l))
	}
	for i := range g.requests {
		m.request(g.requests[i])
		m.request(g.giveBacks[i])
	}
	m.core(g)
	c := &g.call
	m.num(uint64(c.kind), uint64(c.session), uint64(c.answer), uint64(len(c.requests)), uint64(len(c.keys)))
	m.rank(revisions, c.revision)
	m.stored(c.seen)
	m.list(g, c.requests)
	for i, k := range c.keys {
		m.num(k)
		m.yes(c.gone[i])
	}
	return m
}

// list writes whose the requests are. Some may be done, and are nobody's.
func (m *marked) list(g *gatewaySim, list []*request) {
	n := 0
	for _, r := range list {
		if r == nil || r.phase == done {
			continue
		}
		n++
		i := g.clientOf(r)
		m.num(uint64(i)*2 + 1)
		m.yes(r.kind == giveBackRequest)
	}
	m.num(uint64(n))
}

func (m *marked) core(g *gatewaySim) {
	c := g.core
	m.yes(c.known, c.flight != nil, c.news != nil)
	m.num(uint64(c.session))
	m.rank(revisions, c.rev)
	m.record(c.rec)
	m.list(g, c.pending)
	m.list(g, c.leaving)
	for _, id := range slices.Sorted(maps.Keys(c.runs)) {
		q := c.runs[id]
		m.num(id, uint64(q.live))
		m.era(q.generation.created)
		m.rank(generations, q.generation.resets)
		m.list(g, q.waiters)
	}
	for _, h := range slices.SortedFunc(maps.Keys(c.named), func(a, b nameHash) int { return slices.Compare(a[:], b[:]) }) {
		m.num(uint64(h[0]))
		m.list(g, c.named[h])
	}
	m.num(uint64(len(c.discards)))
	for _, id := range c.discards {
		m.num(id)
	}
	if c.news != nil {
		rec, _ := decode(c.news.Value, c.news.Revision)
		m.stored(stored{revision: c.news.Revision, rec: rec})
	}
	if c.flight != nil {
		m.flight(g, c.flight)
	}
}

func (m *marked) flight(g *gatewaySim, f *flight) {
	m.yes(f.doubt, f.fenced, f.blocking)
	m.num(uint64(f.session), uint64(len(f.outcomes)), uint64(len(f.keys)), uint64(len(f.unnamed)))
	m.number(f.session, f.number)
	m.rank(revisions, f.expect)
	m.era(f.created)
	m.record(f.next)
	for i := range f.outcomes {
		o := &f.outcomes[i]
		m.num(uint64(g.clientOf(o.request)), uint64(o.what), o.run)
		m.yes(o.request.kind == giveBackRequest)
		m.answer(&o.answer)
	}
	for _, k := range f.keys {
		m.num(k.ID)
	}
	for _, k := range f.unnamed {
		m.num(k)
	}
}

// identity returns what stands for all situations like this one.
func (s *situation) identity() identity {
	m := &marked{b: make([]byte, 0, 1024), ranks: make([]uint64, 0, 256)}
	m.stored(s.store)
	m.stored(s.before)
	m.num(uint64(len(s.letters)))
	for i := range s.letters {
		w := &s.letters[i]
		rec, _ := decode(w.value, 1<<40)
		m.num(uint64(w.session), uint64(len(w.effects)))
		m.rank(revisions, w.expect)
		m.record(rec)
		for _, e := range w.effects {
			m.num(uint64(e.client), uint64(e.kind), e.run)
		}
	}
	for id, k := range s.keys {
		if k != noKey && !s.refersTo(uint64(id)) {
			k = noKey
		}
		m.num(uint64(k))
	}
	b := &s.left
	m.num(uint64(s.over), uint64(s.opened), uint64(s.doubted), uint64(s.violated))
	for _, n := range []uint8{b.faults, b.crashes, b.ends, b.gones, b.timeouts, b.silences, b.lies, b.expiries, b.forgets} {
		m.num(uint64(n))
	}
	m.num(uint64(len(s.slots)))
	for _, e := range s.slots {
		m.num(uint64(e + 1))
	}
	m.rank(tokens, s.lastToken)
	for i := range s.clients {
		m.client(&s.clients[i])
		m.rank(tokens, s.released[i])
	}
	for _, g := range s.gateways {
		p := g.identity()
		m.num(uint64(len(p.b)))
		m.b = append(m.b, p.b...)
		m.ranks = append(m.ranks, p.ranks...)
	}
	return m.sum()
}

func (m *marked) client(c *client) {
	m.num(uint64(c.status), uint64(c.value), uint64(c.session), c.run, uint64(c.commits), uint64(c.values), uint64(c.ranOut))
	m.yes(c.gone, c.timedOut, c.orphan, c.byOther, c.tardy, c.hit, c.excused, c.possible)
	m.rank(tokens, c.token)
	m.rank(tokens, c.dead)
	m.era(c.mark)
	m.rank(orders, uint64(c.order))
}

// sum hashes the bytes and the ranks.
func (m *marked) sum() identity {
	sorted := slices.Clone(m.ranks)
	for space := range numbers + maxSpaces {
		sorted = append(sorted, rankOf(space, 0))
	}
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for _, r := range m.ranks {
		i, _ := slices.BinarySearch(sorted, r)
		m.num(uint64(i))
	}
	// Where the spaces begin tells the ranks apart from mere positions.
	for space := range numbers + maxSpaces {
		i, _ := slices.BinarySearch(sorted, rankOf(space, 0))
		m.num(uint64(i))
	}
	return identity{maphash.Bytes(seeds[0], m.b), maphash.Bytes(seeds[1], m.b)}
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
