package replicated

import (
	"reflect"
	"slices"

	"pgregory.net/rapid"
)

// check compares the record with the naive lock.
func (h *recordHistory) check(t *rapid.T) {
	if h.rec.held() > h.naive.max {
		t.Fatalf("%d slots of %d are held", h.rec.held(), h.naive.max)
	}
	if h.rec.anonymous != h.naive.anonymous() || h.rec.held() != h.naive.held() || (h.rec.busySince == 0) != (h.naive.held() == 0) {
		t.Fatalf("held: %+v", *h.rec)
	}
	for _, slot := range h.rec.holders {
		want := h.naive.slot(slot.name)
		if want == nil || uint64(want.answers) != slot.answers || !reflect.DeepEqual(sessionsOf(want.waits), sessionSet(slot.waits)) {
			t.Fatalf("the slot %+v should be %+v", slot, want)
		}
		h.tokens[want] = slot.token
	}
	i := 0
	for _, ticket := range h.rec.queue {
		var waits [][]*naiveWait
		if ticket.named() {
			waits = [][]*naiveWait{nil}
		}
		for _, w := range h.ofRun(ticket.session, ticket.run) {
			waits = append(waits, []*naiveWait{w})
		}
		if len(waits) == 0 || int64(len(waits)) != ticket.places() || i+len(waits) > len(h.naive.queue) {
			t.Fatalf("%+v has %d waiters", ticket, len(waits))
		}
		for _, place := range h.naive.queue[i : i+len(waits)] {
			if ticket.named() && (hashName(place.name) != ticket.hash || !reflect.DeepEqual(sessionsOf(place.waits), sessionSet(ticket.waits))) ||
				!ticket.named() && place.waits[0] != waits[0][0] {
				t.Fatalf("the queue is %+v; %+v is in the place of %+v", h.rec.queue, ticket, place)
			}
			waits = waits[1:]
		}
		i += int(ticket.places())
	}
	if i != len(h.naive.queue) {
		t.Fatalf("the queue is %+v, and should have %d places", h.rec.queue, len(h.naive.queue))
	}
	waiters := h.naive.waiters()
	for _, w := range h.all {
		if w.state == naiveWaiting != (slices.Contains(waiters, w)) {
			t.Fatalf("lost, or there twice: %+v", *w)
		}
		if granted := w.slot != nil; granted != h.granted[w] {
			t.Fatalf("granted %v: %+v", h.granted[w], *w)
		}
	}
}

func sessionsOf(waits []*naiveWait) map[SessionID]bool {
	set := make(map[SessionID]bool)
	for _, w := range waits {
		set[w.session] = true
	}
	return set
}

func sessionSet(list []SessionID) map[SessionID]bool {
	set := make(map[SessionID]bool)
	for _, s := range list {
		set[s] = true
	}
	return set
}
