package replicated

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"github.com/lockgateway/lockgateway/lock"
)

// What must be true in a history of batches.

// checkHolders compares the named slots, after each swap: they may be gone soon.
func (h *batchRun) checkHolders(t rapid.TB) {
	r := h.store.record(t)
	last := slices.Max(append(slices.Collect(maps.Values(h.tokens)), 0))
	for i := range r.holders {
		got := &r.holders[i]
		want := h.naive.slot(got.name)
		if want == nil || uint64(want.answers) != got.answers || !reflect.DeepEqual(sessionsOf(want.waits), sessionSet(got.waits)) {
			t.Fatalf("the slot %+v should be %+v", *got, want)
		}
		if known := h.tokens[want]; known == 0 && got.token <= last || known != 0 && known != got.token {
			t.Fatalf("the token of %+v was %d, the last one %d", *got, known, last)
		}
		h.tokens[want] = got.token
	}
}

// check compares the record and all that was answered with the naive lock.
func (h *batchRun) check(t *rapid.T) {
	r := h.store.record(t)
	if r.held() > h.naive.max || r.held() != h.naive.held() || r.anonymous != h.naive.anonymous() {
		t.Fatalf("the record is %+v; %d slots should be held", *r, h.naive.held())
	}
	var places []ticket // one for each
	for _, ticket := range r.queue {
		for range ticket.places() {
			places = append(places, ticket)
		}
	}
	same := slices.EqualFunc(places, h.naive.queue, func(got ticket, want *naivePlace) bool {
		if want.name == "" {
			return !got.named() && got.session == want.waits[0].session
		}
		return got.hash == hashName(want.name) && reflect.DeepEqual(sessionSet(got.waits), sessionsOf(want.waits))
	})
	if !same {
		t.Fatalf("the queue is %+v", r.queue)
	}
	for _, g := range h.gateways {
		for _, op := range g.ops {
			if op.phase == done {
				h.checkAnswer(t, op)
			}
		}
	}
}

func (h *batchRun) checkAnswer(t *rapid.T, op *batchOp) {
	a := op.answer
	var limit *lock.LimitError
	if errors.As(a.err, &limit) != op.limited || !op.limited && a.err != nil || !op.ran {
		t.Fatalf("%+v: %v", *op, a.err)
	}
	switch op.kind {
	case acquireRequest:
		if op.wait.state == naiveWaiting || a.acquired.Acquired != (op.wait.state == naiveGranted) {
			t.Fatalf("%+v was answered %+v, and should be %s", *op.request, a, op.wait.state)
		}
		if a.acquired.Acquired && (a.acquired.Value != op.wait.value || op.holder != "" && a.acquired.Token != h.tokens[op.wait.slot]) {
			t.Fatalf("%+v was answered %+v, and should be %+v", *op.request, a, *op.wait)
		}
	case releaseRequest:
		if a.released != op.freed {
			t.Fatalf("%+v was answered %+v", *op.request, a)
		}
	case valueRequest:
		a.value.Holders = nil
		if !reflect.DeepEqual(a.value, op.sees) {
			t.Fatalf("the value is %+v, and should be %+v", a.value, op.sees)
		}
	default:
	}
}

// checkEnd checks that nothing that can be answered is left.
func (h *batchRun) checkEnd(t *rapid.T) {
	if free := h.naive.max - h.naive.held(); free > 0 && len(h.naive.queue) > 0 {
		t.Fatalf("%d slots are free, and %d wait", free, len(h.naive.queue))
	}
	for _, g := range h.gateways {
		if !g.core.idle() && !g.core.waiting() || len(g.core.leaving) > 0 {
			t.Fatalf("something is left to do: %+v", *g.core)
		}
		for _, op := range g.ops {
			if op.phase != done && (op.wait == nil || op.wait.state != naiveWaiting) {
				t.Fatalf("%+v is not answered; it should be %+v", *op.request, op.wait)
			}
		}
	}
}
