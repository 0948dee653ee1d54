package integration_test

import (
	"fmt"
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
)

func testGatewayKilledUnderLoad(t *testing.T, start starter) {
	gateways := startGateways(t, 3, quick, start(t, 1))
	load := startLoad(t, gateways...)
	for _, g := range gateways[:2] {
		g.Kill(t)
		load.expectProgress(t)
		g.Restart(t)
		load.expectRecovery(t)
	}
	load.stop(t)
}

func testGatewayFrozenUnderLoad(t *testing.T, start starter) {
	gateways := startGateways(t, 3, quick, start(t, 1))
	load := startLoad(t, gateways...)
	for _, g := range gateways[:2] {
		g.Pause(t)
		load.expectProgress(t)
		g.Resume(t)
		load.expectRecovery(t)
	}
	load.stop(t)
}

// The places of a dead gateway vanish, whoever comes before and after them.
func testKilledGatewayTakesItsWaitersAlong(t *testing.T, start starter) {
	c := start(t, 1)
	gateways := startGateways(t, 3, quick, c)
	gateways[0].Take(t, "1/x", gatewaytest.Named(firstHolder))
	waiters := queueAll(t, "1/x", 9, gateways...)
	gateways[1].Kill(t)
	var left []*gatewaytest.Request
	for i, w := range waiters {
		if i%3 != 1 {
			left = append(left, w)
		} else if a := w.Answer(t); a.Err == nil {
			t.Errorf("waiter %d of the dead gateway got %v", i, a)
		}
	}
	awaitGone(t, c, gateways[0], "1/x", int64(len(left)))
	expectInOrder(t, "1/x", left, gateways[0], gateways[2])
}

// They vanish also where nobody else waits, and where one does who comes after
// the slot is free.
func testPlacesOfADeadGatewayHoldNobodyUp(t *testing.T, start starter) {
	c := start(t, 1)
	gateways := startGateways(t, 2, quick, c)
	for _, lock := range []string{"1/seen", "1/wanted"} {
		gateways[0].Take(t, lock, "")
		gateways[1].Queue(t, lock, "", 1)
	}
	gateways[1].Kill(t)
	gateways[0].ExpectRelease(t, "1/wanted", "", true)
	gateways[0].Begin(t, "1/wanted", gatewaytest.ForLong()).ExpectGrant(t)
	awaitGone(t, c, gateways[0], "1/seen", 0)
	gateways[0].AwaitState(t, "1/wanted", 1, 0)
}

// Nor do they keep a free slot from those who do not wait.
func testPlacesOfADeadGatewayHoldNobodyUpWhoTriesOnce(t *testing.T, start starter) {
	gateways := startGateways(t, 2, quick, start(t, 1))
	gateways[0].Take(t, "1/x", "")
	gateways[1].Queue(t, "1/x", "", 1)
	gateways[1].Kill(t)
	gateways[0].ExpectRelease(t, "1/x", "", true)
	process.Await(t, "who tries once gets the slot", func() bool {
		return gateways[0].Acquire(t.Context(), "1/x", gatewaytest.Named("h")).Acquired
	})
	gateways[0].AwaitState(t, "1/x", 1, 0)
}

func testSlotsOfAKilledGatewayStayHeld(t *testing.T, start starter) {
	c := start(t, 1)
	gateways := startGateways(t, 2, quick, c)
	g1, g2 := gateways[0], gateways[1]
	g1.Take(t, "1/anonymous", "")
	named := g1.Take(t, "1/named", gatewaytest.Named("h"))
	w := g1.Queue(t, "1/anonymous", "", 1)
	g1.Kill(t)
	if a := w.Answer(t); a.Err == nil {
		t.Errorf("a waiter of the dead gateway got %v", a)
	}
	awaitGone(t, c, g2, "1/anonymous", 0)
	g2.ExpectTaken(t, "1/anonymous", "")
	g2.ExpectTaken(t, "1/named", gatewaytest.Named("other"))
	if again := g2.Take(t, "1/named", gatewaytest.Named("h")); again.Token != named.Token || again.Held() != 1 {
		t.Errorf("the holder's repeated acquire: %v, at first %v", again, named)
	}
	g2.ExpectRelease(t, "1/anonymous", "", true)
	g2.ExpectRelease(t, "1/named", gatewaytest.Named("h"), true)
	if c.tellsEnds() {
		g2.Take(t, "1/anonymous", "")
	} else {
		g2.Begin(t, "1/anonymous", gatewaytest.ForLong()).ExpectGrant(t)
	}
	g2.Take(t, "1/named", gatewaytest.Named("other"))
}

// A gateway that is restarted finds the slots held, and its waiters gone.
func testB27RestartKeepsHolders(t *testing.T, start starter) {
	for _, test := range []struct {
		name string
		end  func(t *testing.T, g *gatewaytest.Gateway, waiter *gatewaytest.Request)
	}{
		{"killed", func(t *testing.T, g *gatewaytest.Gateway, waiter *gatewaytest.Request) {
			g.Kill(t)
			if a := waiter.Answer(t); a.Err == nil {
				t.Errorf("the waiter got %v", a)
			}
		}},
		{"stopped", func(t *testing.T, g *gatewaytest.Gateway, waiter *gatewaytest.Request) {
			g.Stop(t)
			waiter.ExpectRefused(t)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, 1)
			g := startGateways(t, 1, quick, c)[0]
			g.Take(t, "1/x", "")
			held := g.Take(t, "1/named", gatewaytest.Named("h"))
			test.end(t, g, g.Queue(t, "1/x", "", 1))
			g.Restart(t)
			awaitServing(t, g)
			awaitGone(t, c, g, "1/x", 0)
			g.ExpectTaken(t, "1/x", "")
			if again := g.Take(t, "1/named", gatewaytest.Named("h")); again.Token != held.Token {
				t.Errorf("the holder's repeated acquire: %v, at first %v", again, held)
			}
			g.ExpectRelease(t, "1/x", "", true)
			g.ExpectRelease(t, "1/x", "", false)
		})
	}
}

// A gateway dies while it answers several waiters who were granted together.
// Whoever was told holds; nobody else does who cannot find out.
func testGatewayKilledBetweenItsAnswers(t *testing.T, start starter) {
	const slots, waiters = 5, 12
	c := start(t, 1)
	gateways := startGateways(t, 2, quick, c)
	dying, other := gateways[0], gateways[1]
	for round := range 4 {
		named := fmt.Sprintf("%d/named-%d", slots, round)
		anonymous := fmt.Sprintf("%d/anonymous-%d", slots, round)
		var namedWaiters, anonymousWaiters []*gatewaytest.Request
		for range slots {
			other.Take(t, named, "")
			other.Take(t, anonymous, "")
		}
		for i := range waiters {
			query := gatewaytest.ForLong(gatewaytest.Named(fmt.Sprintf("h-%d", i)))
			namedWaiters = append(namedWaiters, dying.Begin(t, named, query))
			anonymousWaiters = append(anonymousWaiters, dying.Begin(t, anonymous, gatewaytest.ForLong()))
		}
		other.AwaitState(t, named, slots, waiters)
		other.AwaitState(t, anonymous, slots, waiters)

		var releases []*gatewaytest.Request
		for range slots {
			releases = append(releases, other.BeginRelease(t, named, ""), other.BeginRelease(t, anonymous, ""))
		}
		awaitAny(t, append(namedWaiters, anonymousWaiters...))
		dying.Kill(t)
		for _, r := range releases {
			if a := r.Answer(t); !a.OK() || !a.Released {
				t.Errorf("a release was answered %v", a)
			}
		}
		expectToldHold(t, c, other, named, slots, namedWaiters)
		expectToldCounted(t, c, other, anonymous, slots, anonymousWaiters)
		dying.Restart(t)
		awaitServing(t, dying)
	}
}

// awaitAny waits until one of the requests has an answer.
func awaitAny(t *testing.T, requests []*gatewaytest.Request) {
	t.Helper()
	any := make(chan struct{}, len(requests))
	for _, r := range requests {
		go func() { // ends with the request, whose cleanup comes at the test's end
			<-r.Done()
			any <- struct{}{}
		}()
	}
	select {
	case <-any:
	case <-t.Context().Done():
	}
}

// awaitNobodyWaiting is awaitGone for a queue whose held slots are not known.
func awaitNobodyWaiting(t *testing.T, c cluster, g *gatewaytest.Gateway, lock string) {
	t.Helper()
	if c.tellsEnds() {
		g.Await(t, lock, "nobody waiting", func(a gatewaytest.Answer) bool { return a.Waiting == 0 })
	}
}

// expectToldHold checks that whoever was told of a grant finds it again, that
// nobody has another's, and that what is held can be released, all of it.
func expectToldHold(t *testing.T, c cluster, g *gatewaytest.Gateway, lock string, slots int64, waiters []*gatewaytest.Request) {
	t.Helper()
	awaitNobodyWaiting(t, c, g, lock)
	var held int64
	for i, w := range waiters {
		name := fmt.Sprintf("h-%d", i)
		told := w.Answer(t)
		if !told.OK() && !c.tellsEnds() {
			continue // it may have its place yet
		}
		again := g.Acquire(t.Context(), lock, gatewaytest.Named(name))
		if !again.OK() {
			t.Fatalf("the repeated acquire of %s: %v", name, again)
		}
		if told.OK() && (!again.Acquired || again.Token != told.Token) {
			t.Errorf("%s was told %v, and then %v", name, told, again)
		}
		if again.Acquired {
			held++
		}
	}
	if !c.tellsEnds() {
		if a := g.State(t, lock); a.Held() < held || a.Held() > slots {
			t.Errorf("%d holders know of their slots; the value is %v", held, a)
		}
		g.ExpectReset(t, lock)
		return
	}
	if held != slots {
		t.Errorf("%d holders know of their slots, of which there are %d", held, slots)
	}
	g.ExpectState(t, lock, held, 0)
	var freed int64
	for i := range waiters {
		if a := g.Release(t.Context(), lock, gatewaytest.Named(fmt.Sprintf("h-%d", i))); a.OK() && a.Released {
			freed++
		}
	}
	if freed != held {
		t.Errorf("%d of %d slots were released", freed, held)
	}
	g.ExpectState(t, lock, 0, 0)
}

// expectToldCounted checks that at least those hold who were told so.
func expectToldCounted(t *testing.T, c cluster, g *gatewaytest.Gateway, lock string, slots int64, waiters []*gatewaytest.Request) {
	t.Helper()
	var told int64
	for _, w := range waiters {
		if a := w.Answer(t); a.OK() && a.Acquired {
			told++
		}
	}
	awaitNobodyWaiting(t, c, g, lock)
	if a := g.State(t, lock); a.Held() < told || a.Held() > slots {
		t.Errorf("%d clients were told that they hold, of %d slots; the value is %v", told, slots, a)
	}
	g.ExpectReset(t, lock)
}
