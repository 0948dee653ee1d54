package replicated

import "testing"

// Batches whose parts get in each other's way.

// counted counts how often a request is answered.
func counted(r *request) *int {
	n := new(int)
	r.done = func() { *n++ }
	return n
}

func TestReleaseWithdrawsWhatWaitsAndNotWhatComesWithIt(t *testing.T) {
	for _, row := range []struct {
		name     string
		releases []string
		granted  bool // the newcomer
	}{
		{"the newcomer waits", []string{"a"}, false},
		{"the newcomer is granted", []string{"", "a"}, true},
		{"released twice", []string{"a", "a"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := newPlainGateway(t, 1, true, 1, &plainRegister{clock: 10})
			g.submit(acquireRequest, "")
			waiter := g.submit(acquireRequest, "a")
			answers := counted(waiter)
			g.work()
			for _, name := range row.releases {
				g.submit(releaseRequest, name)
			}
			newcomer := g.submit(acquireRequest, "a")
			g.work()
			if waiter.phase != done || *answers != 1 || waiter.answer.acquired.Acquired || waiter.answer.err != nil {
				t.Errorf("who waited before the release is in phase %d, was answered %d times: %+v", waiter.phase, *answers, waiter.answer)
			}
			if row.granted != newcomer.answer.acquired.Acquired || (newcomer.phase == done) != row.granted {
				t.Errorf("the newcomer is in phase %d: %+v", newcomer.phase, newcomer.answer)
			}
			if h := g.store.record(t).holder("a"); row.granted && h.answers != 1 {
				t.Errorf("the slot is %+v", *h)
			}
		})
	}
}

// A reset and a release in one batch answer a waiter once.
func TestWaiterIsAnsweredOnceByAResetAndARelease(t *testing.T) {
	g := newPlainGateway(t, 1, true, 1, &plainRegister{clock: 10})
	g.submit(acquireRequest, "")
	waiter := g.submit(acquireRequest, "a")
	answers := counted(waiter)
	g.work()
	g.submit(releaseRequest, "a")
	g.submit(resetRequest, "")
	g.work()
	if *answers != 1 || waiter.answer.acquired.Acquired || waiter.answer.err != nil {
		t.Errorf("answered %d times: %+v", *answers, waiter.answer)
	}
}

// Places without waiters, of a swap whose outcome was never known, go when
// their turn comes. Then a try for a place behind them may be too early to be
// refused.
func TestTryIsAnsweredOnceWhenPlacesBeforeItGo(t *testing.T) {
	r := &record{created: 1, queue: []ticket{{session: 1, run: 999, count: 3}, namedPlace("a", 1)}}
	store := &plainRegister{value: r.encode(), revision: 10, clock: 10}
	g := newPlainGateway(t, 2, true, 1, store)
	g.follow()
	waiter := g.request(acquireRequest, "a")
	g.core.enqueue(waiter, 0, r.generation())
	try := g.request(acquireRequest, "a")
	try.try = true
	g.core.add(try)
	answers := counted(try)
	g.work()
	wantGranted(t, waiter)
	told := uint64(1)
	if try.answer.acquired.Acquired {
		told++
	}
	if h := store.record(t).holder("a"); *answers != 1 || h == nil || h.answers != told {
		t.Errorf("answered %d times, at last %+v; the slot is %+v", *answers, try.answer, h)
	}
}

// A try does not go before those who wait, even if a slot is left for it.
func TestTryOvertakesNobody(t *testing.T) {
	r := &record{created: 1, queue: []ticket{{session: 2, run: 5, count: 1}}}
	g := newPlainGateway(t, 2, true, 1, &plainRegister{value: r.encode(), revision: 10, clock: 10})
	for _, name := range []string{"", "a"} {
		try := g.request(acquireRequest, name)
		try.try = true
		g.core.add(try)
		g.work()
		if try.phase != done || try.answer.acquired.Acquired || try.answer.err != nil {
			t.Errorf("%q was answered %+v", name, try.answer)
		}
	}
}
