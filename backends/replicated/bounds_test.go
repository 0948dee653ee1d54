package replicated

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lockgateway/lockgateway/lock"
)

// fullQueue returns a gateway whose record has room for no more named waiters,
// with all slots held anonymously but one, which is x's; and who waits.
func fullQueue(t *testing.T, limit int64) (g *plainGateway, holder *request, waiters []*request) {
	t.Helper()
	g = newPlainGateway(t, limit, true, 1, &plainRegister{clock: 10})
	holder = g.submit(acquireRequest, "x")
	for range limit - 1 {
		g.submit(acquireRequest, "")
	}
	waiters = append(waiters, g.submit(acquireRequest, ""))
	g.work()
	for full := false; !full && len(waiters) < 3000; {
		var list []*request
		for range 20 {
			list = append(list, g.submit(acquireRequest, fmt.Sprintf("waiter %d", *g.requests)))
		}
		g.work()
		full = true
		for _, r := range list {
			if r.phase == queued {
				waiters = append(waiters, r)
				full = false
			} else {
				wantTooLarge(t, r)
			}
		}
	}
	wantSize(t, g.store)
	return g, holder, waiters
}

func wantTooLarge(t *testing.T, r *request) {
	t.Helper()
	var limit *lock.LimitError
	if r.phase != done || !errors.As(r.answer.err, &limit) || !errors.Is(r.answer.err, lock.ErrUnavailable) || limit.Max != 64<<10 {
		t.Fatalf("the answer in phase %d is %+v", r.phase, r.answer)
	}
}

func wantSize(t *testing.T, s *plainRegister) {
	t.Helper()
	if size := s.record(t).size(); len(s.value) > 64<<10 || size > 64<<10 || size < 60<<10 {
		t.Fatalf("the record has %d bytes, and may get %d", len(s.value), size)
	}
}

func wantGranted(t *testing.T, list ...*request) {
	t.Helper()
	for _, r := range list {
		if r.phase != done || !r.answer.acquired.Acquired {
			t.Fatalf("%q in phase %d: %+v", r.holder, r.phase, r.answer)
		}
	}
}

func TestFullQueueRefusesWaitersAndNothingElse(t *testing.T) {
	t.Run("acquire", func(t *testing.T) {
		g, _, waiters := fullQueue(t, 2)
		before := string(g.store.value)
		more := g.submit(acquireRequest, "one more")
		g.work()
		wantTooLarge(t, more)
		if string(g.store.value) != before {
			t.Error("the record changed")
		}
		again := g.submit(acquireRequest, waiters[9].holder)
		g.work()
		if again.phase != queued {
			t.Errorf("one who shares a recorded place was answered %+v", again.answer)
		}
	})
	t.Run("release", func(t *testing.T) {
		g, _, waiters := fullQueue(t, 2)
		named, anonymous := g.submit(releaseRequest, "x"), g.submit(releaseRequest, "")
		g.work()
		if !named.answer.released || !anonymous.answer.released {
			t.Errorf("%+v, %+v", named.answer, anonymous.answer)
		}
		wantGranted(t, waiters[:2]...)
	})
	t.Run("by a gateway that is new to the record", func(t *testing.T) {
		g, _, waiters := fullQueue(t, 2)
		other := newPlainGateway(t, 2, true, 2, g.store)
		r := other.submit(releaseRequest, "x")
		other.work()
		g.follow()
		g.work()
		if !r.answer.released {
			t.Errorf("%+v", r.answer)
		}
		wantGranted(t, waiters[0])
	})
	t.Run("reset", func(t *testing.T) {
		g, _, waiters := fullQueue(t, 2)
		r := g.submit(resetRequest, "")
		g.work()
		for _, r := range append(waiters, r) {
			if r.phase != done || r.answer.err != nil || r.answer.acquired.Acquired {
				t.Fatalf("%+v", r.answer)
			}
		}
		if !g.store.record(t).idle() {
			t.Error("the record is not empty")
		}
	})
	t.Run("cancel", func(t *testing.T) {
		g, _, waiters := fullQueue(t, 2)
		g.core.leave(waiters[2], false)
		g.work()
		if waiters[2].phase != done || waiters[2].answer.err != nil {
			t.Errorf("%+v", waiters[2].answer)
		}
		r := g.submit(acquireRequest, waiters[2].holder)
		g.work()
		if r.phase != queued {
			t.Errorf("after another has left: %+v", r.answer)
		}
	})
	t.Run("give-back", func(t *testing.T) {
		g, holder, waiters := fullQueue(t, 2)
		g.core.add(giveBackOf(holder, holder.answer.acquired))
		g.work()
		wantGranted(t, waiters[0])
	})
}

// TestAllNamedPlacesOfAFullRecordAreClaimedAtOnce: as places they are counted
// at the size that they have as holders.
func TestAllNamedPlacesOfAFullRecordAreClaimedAtOnce(t *testing.T) {
	const limit = 2000
	g, _, waiters := fullQueue(t, limit)
	for range limit - 1 {
		g.submit(releaseRequest, "")
	}
	g.work()
	wantGranted(t, waiters...)
	if size := g.store.record(t).size(); size > 64<<10 {
		t.Errorf("the record may get %d bytes", size)
	}
}

func TestFullRecordRefusesNamedHoldersOnly(t *testing.T) {
	g := newPlainGateway(t, 5000, true, 1, &plainRegister{clock: 10})
	var first, last *request
	for range 3000 {
		if last != nil && last.answer.err != nil {
			break
		}
		last = g.submit(acquireRequest, fmt.Sprintf("holder %d", *g.requests))
		g.work()
		if first == nil {
			first = last
		}
	}
	wantTooLarge(t, last)
	wantSize(t, g.store)
	repeat, anonymous, release := g.submit(acquireRequest, first.holder), g.submit(acquireRequest, ""), g.submit(releaseRequest, "holder 2")
	g.work()
	wantGranted(t, first, repeat, anonymous)
	if repeat.answer.acquired.Token != first.answer.acquired.Token || !release.answer.released {
		t.Errorf("%+v, %+v", repeat.answer, release.answer)
	}
	again := g.submit(acquireRequest, "holder 2")
	g.work()
	wantGranted(t, again)
}

// TestFullQueueTakesNoRunButMoreOfTheLastOne: only another run needs room.
func TestFullQueueTakesNoRunButMoreOfTheLastOne(t *testing.T) {
	r := &record{created: 1, anonymous: 1, busySince: 1}
	for n := r.size(); n+2*runSize <= maxRecordSize; n += 2 * runSize {
		for s := range SessionID(2) {
			r.enqueueRun(s+1, uint64(len(r.queue)+1), 1)
		}
	}
	store := &plainRegister{value: r.encode(), revision: 10, clock: 10}
	other, owner := newPlainGateway(t, 1, true, 1, store), newPlainGateway(t, 1, true, 2, store)
	refused := other.submit(acquireRequest, "")
	other.work()
	wantTooLarge(t, refused)
	joined := owner.submit(acquireRequest, "")
	owner.work()
	if joined.phase != queued {
		t.Errorf("one more of the last run: %+v", joined.answer)
	}
}

// TestCrowdOfOneBatchIsOneRun: what arrives during one swap is one run in the
// next, and takes the room of one.
func TestCrowdOfOneBatchIsOneRun(t *testing.T) {
	g := newPlainGateway(t, 1, true, 1, &plainRegister{clock: 10})
	for range 5000 {
		g.submit(acquireRequest, "")
	}
	g.work()
	if r := g.store.record(t); r.waiting() != 4999 || len(r.queue) != 1 {
		t.Errorf("%d wait in %d runs", r.waiting(), len(r.queue))
	}
}

// TestSwapGrantsNoMoreTokensThanARevisionHas drives the plan itself: a record
// has no room for so many holders yet.
func TestSwapGrantsNoMoreTokensThanARevisionHas(t *testing.T) {
	newPlan := func(c *core) *plan {
		return &plan{
			core: c, world: world{ended: plainNobodyEnded}, waits: -1, next: c.rec.clone(),
			grants: grantsPerRevision - 1,
		}
	}
	t.Run("new ones", func(t *testing.T) {
		g := newPlainGateway(t, 5, true, 1, &plainRegister{})
		g.submit(acquireRequest, "a")
		late := g.submit(acquireRequest, "b")
		anonymous := g.submit(acquireRequest, "")
		g.core.rec = &record{}
		p := newPlan(g.core)
		p.claim()
		p.acquire()
		if len(p.next.holders) != 1 || p.next.holders[0].index != 4095 || p.next.anonymous != 1 || len(p.outcomes) != 2 {
			t.Errorf("%+v", *p.next)
		}
		for _, o := range p.outcomes {
			if o.request == late || o.request == anonymous && !o.answer.acquired.Acquired {
				t.Errorf("%+v", o)
			}
		}
	})
	t.Run("queued ones", func(t *testing.T) {
		g := newPlainGateway(t, 5, true, 1, &plainRegister{})
		c := g.core
		c.rec = &record{queue: []ticket{namedPlace("a", 1), namedPlace("b", 1), {session: 1, run: 9, count: 1}}}
		for _, name := range []string{"a", "b", ""} {
			c.enqueue(g.request(acquireRequest, name), 9, c.rec.generation())
		}
		p := newPlan(c)
		p.claim()
		if len(p.next.holders) != 1 || p.next.holders[0].name != "a" || p.next.anonymous != 1 || len(p.next.queue) != 1 || len(p.outcomes) != 2 {
			t.Errorf("%+v", *p.next)
		}
	})
}
