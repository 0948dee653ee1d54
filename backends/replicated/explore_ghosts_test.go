//go:build !race

package replicated

import (
	"fmt"
	"slices"
)

// What an observer of all commits knows, whatever the gateways know.

// effect is what a swap makes of a client's request.
type effect struct {
	client int
	kind   effects
	run    uint64 // of those that are queued
}

type effects uint16

const (
	queues effects = 1 << iota
	leaves
	grants
	denies
	refuses
	frees
	resets
	givesBack
	tells
)

// ghosts are what an observer of all commits knows.
type ghosts struct {
	slots     []int8   // since the last reset: anonymous grants (the client) and releases (-1)
	lastToken uint64   // the greatest so far
	released  []uint64 // by client: tokens of its holder up to this were released, reset or expired
	doubted   sessions // live ones that somebody took for ended
	violated  violation
	detail    string
}

const released = -1

func (h ghosts) copy() ghosts {
	h.slots = slices.Clone(h.slots)
	h.released = slices.Clone(h.released)
	return h
}

// begins notes that a client sends its request.
func (s *situation) begins(i int) {
	c := &s.clients[i]
	c.status, c.dead = waitsForAnswer, s.released[i]
	for id, k := range s.keys {
		if k == runOut {
			c.ranOut |= 1 << id
		}
	}
	if r := s.store.rec; r != nil && !s.sc.clients[i].ttl {
		if h := r.holder(s.sc.clients[i].holder); h != nil && !s.lives(h) {
			c.dead = h.token
		}
	}
	s.observeOne(i)
}

// lives reports whether a holder's slot has not run out.
func (s *situation) lives(h *holder) bool { return h.expiring == 0 || s.keys[h.expiring] != runOut }

// observe notes which answers are true at this moment.
func (s *situation) observe() {
	for i := range s.clients {
		if s.clients[i].status == waitsForAnswer {
			s.observeOne(i)
		}
	}
}

func (s *situation) observeOne(i int) {
	c, q, r := &s.clients[i], &s.sc.clients[i], s.store.rec
	// A slot that had run out before the request was sent must not count; one
	// that has run out since may.
	held, lasting, held0, anonymous, waiting := int64(0), int64(0), int64(0), int64(0), int64(0)
	var mine *holder
	if r != nil {
		anonymous, waiting, held0 = r.anonymous, r.waiting(), r.held()
		held, lasting = r.anonymous, r.anonymous
		for k := range r.holders {
			h := &r.holders[k]
			if s.lives(h) {
				lasting++
				if h.name == q.holder {
					mine = h
				}
			}
			if h.expiring == 0 || c.ranOut>>h.expiring&1 == 0 {
				held++
			} else if len(h.waits) > 0 {
				waiting++ // their place
			}
		}
	}
	switch {
	case q.kind == valueRequest:
		if r == nil || r.fresh && held0 == 0 {
			c.values |= 1
		} else {
			c.values |= 2<<held | 2<<lasting
		}
	case q.kind == resetRequest:
		c.possible = c.possible || r == nil
	case q.kind == releaseRequest && q.holder == "":
		c.possible = c.possible || anonymous == 0
	case q.kind == releaseRequest:
		c.possible = c.possible || mine == nil
	case q.kind == acquireRequest && q.try && mine == nil:
		before := waiting
		if q.holder != "" && r != nil {
			if k := r.namedTicket(hashName(q.holder)); k >= 0 {
				before = 0
				for _, t := range r.queue[:k] {
					before += t.places()
				}
			}
		}
		c.possible = c.possible || held+before >= s.sc.max
	}
}

// committed notes what a swap that was applied has done.
func (s *situation) committed(old, rec *record, w *sent) {
	if old == nil {
		old = &record{fresh: true}
	}
	var all effects
	count := map[effects]int64{}
	for _, e := range w.effects {
		all |= e.kind
		if s.sc.clients[e.client].holder == "" {
			count[e.kind]++
		}
	}
	back := count[givesBack]
	if all&resets == 0 {
		back = old.anonymous - count[frees] + count[grants] - rec.anonymous
		if back < 0 || back > count[givesBack] {
			s.violate(doesNotAddUp, fmt.Sprintf("%d slots more than expected are free", back))
		}
	}
	for k := len(s.slots) - 1; k >= 0 && back > 0; k-- {
		mine := func(e effect) bool { return e.kind == givesBack && int8(e.client) == s.slots[k] }
		if slices.ContainsFunc(w.effects, mine) {
			s.slots = slices.Delete(s.slots, k, k+1)
			back--
		}
	}
	if all&resets != 0 {
		s.slots = nil
		for i := range s.clients {
			c := &s.clients[i]
			c.hit = c.hit || c.order != 0
			c.order = 0
			c.excused = c.excused || c.status == waitsForAnswer
		}
	}
	s.noteReleases(old, rec, w, all)
	s.noteTokens(old, rec)
	for _, e := range w.effects {
		s.noteEffect(old, rec, w, e, count)
	}
	if rec.held() > s.sc.max {
		s.violate(tooManyHeld, fmt.Sprintf("%d held", rec.held()))
	}
	for i := range s.clients {
		if c := &s.clients[i]; c.order != 0 && (s.sc.clients[i].holder == "" && rec.runTicket(c.session, c.run) < 0) {
			c.order = 0
		}
	}
	s.observe()
}

// noteReleases notes which named slots ended for a reason.
func (s *situation) noteReleases(old, rec *record, w *sent, all effects) {
	for _, e := range w.effects {
		q := &s.sc.clients[e.client]
		if q.kind != releaseRequest || e.kind&(frees|denies) == 0 {
			continue
		}
		if q.holder == "" {
			continue
		}
		for i := range s.clients {
			if s.sc.clients[i].holder == q.holder {
				s.clients[i].hit = s.clients[i].hit || s.clients[i].order != 0
				s.clients[i].order = 0
				s.clients[i].excused = s.clients[i].excused || s.clients[i].status == waitsForAnswer
			}
		}
	}
	for k := range old.holders {
		h := &old.holders[k]
		if now := rec.holder(h.name); now != nil && now.token == h.token {
			continue
		}
		ended := all&resets != 0 || h.expiring != 0 && s.keys[h.expiring] == runOut
		for _, e := range w.effects {
			q := &s.sc.clients[e.client]
			ended = ended || q.kind == releaseRequest && q.holder == h.name
		}
		if !ended {
			continue
		}
		for i := range s.released {
			if s.sc.clients[i].holder == h.name {
				s.released[i] = max(s.released[i], h.token)
			}
		}
	}
}

func (s *situation) noteTokens(old, rec *record) {
	last := s.lastToken
	for k := range rec.holders {
		h := &rec.holders[k]
		if was := old.holder(h.name); was != nil && was.token == h.token {
			if was.expiring != h.expiring {
				s.renewed(h)
			}
			continue
		}
		same := slices.IndexFunc(rec.holders, func(other holder) bool { return other.token == h.token })
		if h.token <= last || same != k {
			s.violate(tokenNotGreater, fmt.Sprintf("%s has %d after %d", h.name, h.token, last))
		}
		s.lastToken = max(s.lastToken, h.token)
	}
}

// renewed notes that a slot goes on. Nobody took it although it had run out.
func (s *situation) renewed(h *holder) {
	for i := range s.clients {
		if c := &s.clients[i]; s.sc.clients[i].holder == h.name && c.dead == h.token {
			c.dead = s.released[i]
		}
	}
}

// entered notes that an anonymous client was granted a slot.
func (s *situation) entered(i int) {
	if !slices.Contains(s.slots, int8(i)) {
		s.slots = append(s.slots, int8(i))
	}
}

func (s *situation) noteEffect(old, rec *record, w *sent, e effect, count map[effects]int64) {
	c, q := &s.clients[e.client], &s.sc.clients[e.client]
	if e.kind&(queues|grants|frees|resets|givesBack) != 0 {
		if c.commits&e.kind != 0 {
			s.violate(twice, fmt.Sprintf("client %d: %v", e.client, e.kind))
		}
		if c.status == told503 && e.kind&(frees|resets) != 0 {
			s.violate(afterAnswer, fmt.Sprintf("client %d was told 503, and %v", e.client, e.kind))
		}
		c.commits |= e.kind
	}
	switch e.kind {
	case queues:
		s.queued(e.client, w.session, e.run)
	case leaves:
		c.order = 0
	case grants:
		s.noteGrant(e.client, old, rec, w)
	case denies:
		c.order = 0
		if q.kind == releaseRequest {
			// In the batch, after its give-backs and the releases before this one.
			none := q.holder == "" && (old.anonymous-count[frees]-count[givesBack] <= 0)
			if was := old.holder(q.holder); was != nil {
				now := rec.holder(q.holder)
				none = none || now == nil || now.token != was.token
			}
			c.possible = c.possible || none || c.commits&resets != 0
		}
	case frees:
		if q.holder == "" {
			s.slots = append(s.slots, released)
		}
	default:
	}
}

// queued notes the place of a client, or that it shares its holder's.
func (s *situation) queued(i int, session SessionID, run uint64) {
	c, order := &s.clients[i], uint8(0)
	for k := range s.clients {
		other := &s.clients[k]
		if name := s.sc.clients[i].holder; name != "" && s.sc.clients[k].holder == name && other.order != 0 {
			c.order = other.order
		}
		order = max(order, other.order)
	}
	if c.order == 0 {
		c.order = order + 1
	}
	c.session, c.run = session, run
}

func (s *situation) noteGrant(i int, old, rec *record, w *sent) {
	c, q := &s.clients[i], &s.sc.clients[i]
	if c.status == gotNothing { // its gateway crashed
		if q.holder == "" {
			s.entered(i)
		}
		return
	}
	if c.hit {
		s.violate(oldGeneration, fmt.Sprintf("client %d", i))
	}
	order := c.order
	c.order = 0
	if q.gateway < len(s.gateways) && s.gateways[q.gateway].session != w.session && c.session != 0 && c.session != w.session {
		c.byOther = true
	}
	if q.holder == "" {
		s.entered(i)
	} else if was, now := old.holder(q.holder), rec.holder(q.holder); was != nil && now != nil && was.token == now.token {
		return // a repeat
	}
	free := s.sc.max - rec.held()
	for k := range s.clients {
		if o := s.clients[k].order; o == 0 || order != 0 && o >= order {
			continue
		}
		if at, ok := s.position(k); ok && at >= free {
			s.violate(overtaken, fmt.Sprintf("client %d by client %d", k, i))
		}
	}
}

// position returns how many places are before that of a client that waits.
func (s *situation) position(k int) (at int64, ok bool) {
	c, q, r := &s.clients[k], &s.sc.clients[k], s.store.rec
	g := s.gateways[q.gateway]
	if c.status != waitsForAnswer || c.timedOut || !g.up || g.session != c.session || s.over.has(c.session) || r == nil {
		return 0, false
	}
	t := r.runTicket(c.session, c.run)
	if q.holder != "" {
		if t = r.namedTicket(hashName(q.holder)); t >= 0 && !slices.Contains(r.queue[t].waits, c.session) {
			return 0, false
		}
	}
	if t < 0 {
		return 0, false
	}
	for i := range r.queue[:t] {
		at += r.queue[i].places()
	}
	for i := range s.clients {
		o := &s.clients[i]
		if q.holder == "" && o.run == c.run && o.session == c.session && o.order != 0 && o.order < c.order && o.status == waitsForAnswer {
			at++
		}
	}
	return at, true
}
