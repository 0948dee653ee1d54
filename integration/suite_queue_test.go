package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
)

// Slots go in the order in which places were recorded, whichever the gateways.
func testOrderAcrossGateways(t *testing.T, start starter) {
	gateways := startGateways(t, 3, patient, start(t, 3))
	for round := range 3 {
		lock := fmt.Sprintf("1/round-%d", round)
		gateways[0].Take(t, lock, gatewaytest.Named(firstHolder))
		expectInOrder(t, lock, queueAll(t, lock, 9, gateways...), gateways...)
	}
}

// Clients that gave up leave their places, and the others move up.
func testOrderWithoutThoseWhoLeft(t *testing.T, start starter) {
	gateways := startGateways(t, 3, patient, start(t, 1))
	gateways[0].Take(t, "1/x", gatewaytest.Named(firstHolder))
	waiters := queueAll(t, "1/x", 9, gateways...)
	waiters[0].HangUp()
	waiters[4].HangUp()
	gateways[1].ExpectRelease(t, "1/x", gatewaytest.Named("waiter-8"), false) // withdraws it
	waiters[8].ExpectDenied(t)
	left := slices.Concat(waiters[1:4], waiters[5:8])
	gateways[0].AwaitState(t, "1/x", 1, int64(len(left)))
	expectInOrder(t, "1/x", left, gateways...)
}

// B's client closes at the instant B is granted. The slot is B's, or it goes on
// to C; C does not wait beside a free slot.
func testB3HangUpRacesGrant(t *testing.T, start starter) {
	g1, g2 := startTwo(t, start)
	granted, crossed := 0, 0
	// The later b hangs up, the more often it wins. The delay goes to where it
	// does so every other time, and that is where the race is.
	delay := time.Millisecond
	const rounds = 60
	for round := range rounds {
		lock := fmt.Sprintf("1/round-%d", round)
		g1.Take(t, lock, "")
		b := g1.Queue(t, lock, "", 1)
		c := g2.Queue(t, lock, "", 2)
		release := g2.BeginRelease(t, lock, "")
		time.Sleep(delay)
		answer := b.HangUp()
		if a := release.Answer(t); !a.OK() || !a.Released {
			t.Fatalf("the release got %v", a)
		}
		if answer.OK() {
			if !answer.Acquired {
				t.Fatalf("b got %v", answer)
			}
			granted++
			delay -= delay / 4
			c.ExpectWaiting(t)
			g1.ExpectRelease(t, lock, "", true)
		} else {
			delay += delay/4 + 10*time.Microsecond
			if !heldForC(t, g1, lock, c) {
				// The answer crossed the close on the wire, and counts as delivered.
				crossed++
				g1.ExpectRelease(t, lock, "", true)
			}
		}
		c.ExpectGrant(t)
		g1.ExpectState(t, lock, 1, 0)
		g2.ExpectRelease(t, lock, "", true)
		g1.ExpectState(t, lock, 0, 0)
	}
	t.Logf("of %d rounds b won %d, and in %d its answer crossed the close", rounds, granted, crossed)
}

// heldForC reports whether c gets its slot, or somebody else has it who must be
// the one that was granted and hung up. There is never a free slot meanwhile.
func heldForC(t *testing.T, g *gatewaytest.Gateway, lock string, c *gatewaytest.Request) bool {
	t.Helper()
	select {
	case <-c.Done():
		return true
	case <-time.After(3 * time.Second):
	}
	a := g.State(t, lock)
	if a.Waiting == 0 {
		return true // c's answer is on its way
	}
	if a.Held() != 1 || a.Waiting != 1 {
		t.Fatalf("a waiter stands beside a free slot: %v", a)
	}
	return false
}

// Hand-overs come by events, one right after the other. How fast they were is
// logged, and not judged.
func testB25EightClientsInARow(t *testing.T, start starter) {
	g1, g2 := startTwo(t, start)
	gateways := []*gatewaytest.Gateway{g1, g2}
	const clients = 8
	g1.Take(t, "1/x", gatewaytest.Named(firstHolder))
	waiters := queueAll(t, "1/x", clients, gateways...)
	begun := time.Now()
	g1.ExpectRelease(t, "1/x", gatewaytest.Named(firstHolder), true)
	for i, w := range waiters {
		w.ExpectGrant(t)
		for _, later := range waiters[i+1:] {
			later.ExpectWaiting(t)
		}
		time.Sleep(10 * time.Millisecond) // the work that the lock protects
		gateways[(i+1)%2].ExpectRelease(t, "1/x", gatewaytest.Named(fmt.Sprintf("waiter-%d", i)), true)
	}
	t.Logf("%d hand-overs took %v", clients, time.Since(begun))
}

// A releases and acquires in a tight loop. B, who waits, gets the next grant.
func testB26ReleaserDoesNotBarge(t *testing.T, start starter) {
	g1, g2 := startTwo(t, start)
	g1.Take(t, "1/x", gatewaytest.Named("a"))
	for range 30 {
		b := g2.Queue(t, "1/x", gatewaytest.Named("b"), 1)
		g1.ExpectRelease(t, "1/x", gatewaytest.Named("a"), true)
		a := g1.Begin(t, "1/x", gatewaytest.ForLong(gatewaytest.Named("a")))
		granted := b.ExpectGrant(t)
		g1.AwaitState(t, "1/x", 1, 1)
		a.ExpectWaiting(t)
		g2.ExpectRelease(t, "1/x", gatewaytest.Named("b"), true)
		if next := a.ExpectGrant(t); next.Token <= granted.Token {
			t.Fatalf("a got %v after b got %v", next, granted)
		}
	}
}

// A holder that was granted through one gateway releases and comes again
// through another.
func testHolderChangesGateways(t *testing.T, start starter) {
	gateways := startGateways(t, 3, patient, start(t, 1))
	var last uint64
	for i := range 60 {
		g, next := gateways[i%3], gateways[(i+1)%3]
		a := g.Take(t, "1/x", gatewaytest.Named("h"))
		if a.Token <= last {
			t.Fatalf("token %d after %d", a.Token, last)
		}
		last = a.Token
		if again := next.Take(t, "1/x", gatewaytest.Named("h")); again.Token != last {
			t.Fatalf("the grant is %v, and then %v", a, again)
		}
		next.ExpectRelease(t, "1/x", gatewaytest.Named("h"), true)
		g.ExpectRelease(t, "1/x", gatewaytest.Named("h"), false)
	}
}

// A holder asks through two gateways at once, and has one place.
func testHolderSharesItsPlaceAcrossGateways(t *testing.T, start starter) {
	g1, g2 := startTwo(t, start)
	g1.Take(t, "1/x", "")
	first := g1.Queue(t, "1/x", gatewaytest.Named("h"), 1)
	second := g2.Begin(t, "1/x", gatewaytest.ForLong(gatewaytest.Named("h")))
	third := g2.Queue(t, "1/x", gatewaytest.Named("other"), 2)
	first.HangUp()
	second.ExpectWaiting(t)
	g2.ExpectState(t, "1/x", 1, 2)
	g1.ExpectRelease(t, "1/x", "", true)
	second.ExpectGrant(t)
	third.ExpectWaiting(t)
	g1.ExpectRelease(t, "1/x", gatewaytest.Named("h"), true)
	third.ExpectGrant(t)
	g1.ExpectState(t, "1/x", 1, 0)
}

func testResetEmptiesTheQueueEverywhere(t *testing.T, start starter) {
	gateways := startGateways(t, 3, patient, start(t, 1))
	before := gateways[0].Take(t, "1/x", gatewaytest.Named(firstHolder))
	waiters := queueAll(t, "1/x", 6, gateways...)
	gateways[1].ExpectReset(t, "1/x")
	for _, w := range waiters {
		w.ExpectDenied(t)
	}
	for _, g := range gateways {
		if a := g.State(t, "1/x"); a.Value != nil || a.Waiting != 0 {
			t.Errorf("after the reset the state is %v", a)
		}
	}
	if after := gateways[2].Take(t, "1/x", gatewaytest.Named(firstHolder)); after.Token <= before.Token {
		t.Errorf("after the reset the grant is %v, before it was %v", after, before)
	}
}

// Resets come in between grants, claims, releases and clients that leave. All
// get an answer, and nothing is left.
func testResetRacesEverything(t *testing.T, start starter) {
	gateways := startGateways(t, 3, patient, start(t, 1))
	const lock, slots = "2/x", 2
	var clients sync.WaitGroup
	for i := range 12 {
		clients.Go(func() {
			for round := range 40 {
				g := gateways[rand.IntN(len(gateways))]
				act(t, g, lock, fmt.Sprintf("client-%d-%d", i, round), rand.IntN(10))
			}
		})
	}
	clients.Wait()
	for _, g := range gateways {
		g.Await(t, lock, "nobody waiting", func(a gatewaytest.Answer) bool { return a.Waiting == 0 && a.Held() <= slots })
	}
	gateways[0].ExpectReset(t, lock)
	for i := range slots {
		gateways[i].Take(t, lock, "")
	}
	for _, g := range gateways {
		g.ExpectTaken(t, lock, "")
		g.ExpectState(t, lock, slots, 0)
	}
}

// act sends one request of some kind, which must get an answer unless the
// client hangs up.
func act(t *testing.T, g *gatewaytest.Gateway, lock, name string, kind int) {
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	var a gatewaytest.Answer
	switch kind {
	case 0:
		a = g.Reset(ctx, lock)
	case 1, 2:
		a = g.Release(ctx, lock, "")
	case 3:
		leaving, leave := context.WithTimeout(ctx, rand.N(20*time.Millisecond))
		defer leave()
		g.Acquire(leaving, lock, gatewaytest.ForLong())
		return
	case 4:
		leaving, leave := context.WithTimeout(ctx, rand.N(20*time.Millisecond))
		defer leave()
		g.Acquire(leaving, lock, gatewaytest.ForLong(gatewaytest.Named(name)))
		a = g.Release(ctx, lock, gatewaytest.Named(name))
	case 5, 6:
		a = g.Acquire(ctx, lock, gatewaytest.Wait(50*time.Millisecond, gatewaytest.Named(name)))
		if a.OK() && a.Acquired {
			a = g.Release(ctx, lock, gatewaytest.Named(name))
		}
	default:
		a = g.Acquire(ctx, lock, gatewaytest.Wait(50*time.Millisecond))
	}
	if !a.OK() {
		t.Errorf("a request of kind %d was answered %v", kind, a)
	}
}
