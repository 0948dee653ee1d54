package replicated

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTransitionsBehaveLikeTheNaiveLock makes random transitions of a record,
// as gateways would, and the same changes to a lock that is a list of slots and
// a list of waiters.
func TestTransitionsBehaveLikeTheNaiveLock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 4).Draw(t, "max")
		h := &recordHistory{
			rec:     &record{created: rapid.Uint64().Draw(t, "created"), fresh: true},
			naive:   &naiveLock{max: limit, fresh: true},
			ended:   make(map[SessionID]bool),
			granted: make(map[*naiveWait]bool),
			eras:    make(map[*naiveWait]uint64),
			tokens:  make(map[*naiveSlot]uint64),
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire":   h.acquire,
			"claim":     func(t *rapid.T) { h.claim(h.session(t)) },
			"repeat":    func(t *rapid.T) { h.repeatShared(h.session(t)) },
			"cancel":    h.cancel,
			"release":   h.release,
			"give back": h.giveBack,
			"expire":    h.expire,
			"reset":     h.reset,
			"prune":     h.prune,
			"end":       h.end,
			"":          h.check,
		})
	})
}

// recordHistory is a record and the naive lock, and what the gateways know.
type recordHistory struct {
	rec   *record
	naive *naiveLock

	all     []*naiveWait
	ended   map[SessionID]bool
	granted map[*naiveWait]bool   // by the transitions
	eras    map[*naiveWait]uint64 // of anonymous grants
	tokens  map[*naiveSlot]uint64
	last    uint64 // of all tokens, runs and keys
}

var historyNames = []string{"", "", "a", "b", "ab"}

// session draws a session that has not ended.
func (h *recordHistory) session(t *rapid.T) SessionID {
	s := SessionID(rapid.IntRange(1, 3).Draw(t, "session"))
	for h.ended[s] {
		s += 3 // its gateway has another one
	}
	return s
}

func (h *recordHistory) unique() uint64 {
	h.last++
	return h.last
}

func (h *recordHistory) acquire(t *rapid.T) {
	w := &naiveWait{session: h.session(t), name: rapid.SampledFrom(historyNames).Draw(t, "name")}
	h.claim(w.session)
	h.repeatShared(w.session)
	h.all = append(h.all, w)
	room := h.naive.max - h.rec.held() - h.rec.waiting()
	switch {
	case w.name == "" && room > 0:
		h.takeAnonymous(w)
	case w.name == "":
		w.run = h.rec.enqueueRun(w.session, h.unique(), 1)
	case h.rec.holder(w.name) != nil:
		h.rec.holder(w.name).answers++
		h.granted[w] = true
	case room > 0 && h.rec.namedTicket(hashName(w.name)) < 0:
		h.take(w.name).answers = 1
		h.granted[w] = true
	default:
		h.rec.enqueueNamed(w.session, w.name, hashName(w.name), 1)
	}
	h.naive.enqueue(w)
	if w.state == naiveWaiting {
		h.claim(w.session) // one that has joined a place may be entitled
	}
}

func (h *recordHistory) takeAnonymous(w *naiveWait) {
	h.rec.takeAnonymous(1)
	h.granted[w] = true
	h.eras[w] = h.rec.era()
}

func (h *recordHistory) take(name string) *holder {
	slot := h.rec.takeNamed(name, 0, 1)
	slot.token, slot.expiring, slot.ttl = h.unique(), h.unique(), time.Second
	return slot
}

// claim takes what a session is entitled to, first of the record.
func (h *recordHistory) claim(s SessionID) {
	free := h.naive.max - h.rec.held()
	for i := 0; i < len(h.rec.queue) && free > 0; {
		ticket := h.rec.queue[i]
		ticket.waits = slices.Clone(ticket.waits)
		switch {
		case !ticket.named() && ticket.session == s:
			n := min(free, ticket.count)
			for _, w := range h.ofRun(s, ticket.run)[:n] {
				h.takeAnonymous(w)
			}
			h.rec.leaveRun(s, ticket.run, n)
			free -= n
			if n < ticket.count || n == 0 {
				i++
			}
			continue
		case ticket.named() && slices.Contains(ticket.waits, s):
			h.rec.queue = slices.Delete(h.rec.queue, i, i+1)
			var slot *holder
			for _, w := range h.all {
				if w.session == s && w.state == naiveWaiting && w.name != "" && hashName(w.name) == ticket.hash && !h.granted[w] {
					if slot == nil {
						slot = h.take(w.name)
						slot.waits = dropSession(ticket.waits, s)
					}
					slot.answers++
					h.granted[w] = true
				}
			}
			free--
			continue
		}
		free -= ticket.places()
		i++
	}
	h.naive.claim(s)
}

// ofRun lists the waiters of a run that still wait, in the order of arrival.
func (h *recordHistory) ofRun(s SessionID, run uint64) []*naiveWait {
	var list []*naiveWait
	for _, w := range h.all {
		if w.name == "" && w.session == s && w.run == run && w.state == naiveWaiting && !h.granted[w] {
			list = append(list, w)
		}
	}
	return list
}

func (h *recordHistory) repeatShared(s SessionID) {
	for i := range h.rec.holders {
		slot := &h.rec.holders[i]
		for _, w := range h.naive.slot(slot.name).waits {
			if w.session == s {
				slot.answers++
				h.granted[w] = true
			}
		}
		slot.waits = dropSession(slot.waits, s)
	}
	h.naive.answerShared(s)
}

// pick draws one of the acquires that are so, or skips the step.
func (h *recordHistory) pick(t *rapid.T, so func(*naiveWait) bool) *naiveWait {
	var list []*naiveWait
	for _, w := range h.all {
		if so(w) {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		t.Skip("none")
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(t, "which")]
}

func (h *recordHistory) cancel(t *rapid.T) {
	w := h.pick(t, func(w *naiveWait) bool { return w.state == naiveWaiting && !h.ended[w.session] })
	h.naive.cancel(w, naiveRefused)
	if w.name == "" {
		h.rec.leaveRun(w.session, w.run, 1)
	} else if !slices.ContainsFunc(h.all, func(other *naiveWait) bool {
		return other.name == w.name && other.session == w.session && other.state == naiveWaiting
	}) {
		h.rec.leaveNamed(w.session, hashName(w.name), w.name)
	}
}

func (h *recordHistory) release(t *rapid.T) {
	name := rapid.SampledFrom(historyNames).Draw(t, "name")
	var got bool
	if name == "" {
		got = h.rec.releaseAnonymous()
	} else {
		got = h.rec.releaseNamed(name)
	}
	if want := h.naive.release(name); got != want {
		t.Fatalf("release of %q gave %v", name, got)
	}
}

// giveBack gives back grants, also of slots that are gone, once each.
func (h *recordHistory) giveBack(t *rapid.T) {
	w := h.pick(t, func(w *naiveWait) bool { return w.state == naiveGranted })
	got := false
	if w.name == "" {
		got = h.rec.giveBackAnonymous(h.eras[w])
	} else if token, ok := h.tokens[w.slot]; ok {
		got = h.rec.giveBackNamed(w.name, token)
	}
	if want := h.naive.giveBack(w); got != want {
		t.Fatalf("the give-back of %+v gave %v", *w, got)
	}
	w.state = "given back"
}

func (h *recordHistory) expire(t *rapid.T) {
	if len(h.rec.holders) == 0 {
		t.Skip("none")
	}
	slot := h.rec.holders[rapid.IntRange(0, len(h.rec.holders)-1).Draw(t, "which")]
	if !h.rec.expire(slot.expiring) || h.rec.expire(slot.expiring) {
		t.Fatalf("the key of %+v did not expire once", slot)
	}
	h.naive.expire(slot.name)
}

func (h *recordHistory) reset(*rapid.T) {
	h.rec.reset()
	h.naive.reset()
	if !h.rec.idle() || !h.rec.fresh {
		panic(fmt.Sprintf("after a reset the record is %+v", *h.rec))
	}
}

func (h *recordHistory) end(t *rapid.T) { h.ended[h.session(t)] = true }

func (h *recordHistory) prune(t *rapid.T) {
	before := h.rec.clone()
	changed := false
	for _, w := range h.all {
		if w.state == naiveWaiting && h.ended[w.session] {
			h.naive.cancel(w, naiveLost)
			changed = true
		}
	}
	if got := h.rec.prune(func(s SessionID) bool { return h.ended[s] }); got != changed {
		t.Fatalf("prune gave %v", got)
	}
	after := h.rec.clone()
	after.queue, before.queue = nil, nil
	for i := range before.holders {
		before.holders[i].waits, after.holders[i].waits = nil, nil
	}
	if !equalRecords(before, after) {
		t.Fatalf("prune made\n%+v of\n%+v", *after, *before)
	}
}
