package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// Slots without a TTL are held for ever; those with one free themselves.
func testB15SlotsOfTheDeadFreeThemselvesOneByOne(t *testing.T, start starter) {
	gateways := startGateways(t, 2, patient, start(t, 1))
	g1, g2 := gateways[0], gateways[1]
	const slots = 3
	free := make(map[string]time.Time) // when each may be free at the earliest
	for i := range slots {
		g1.Take(t, "3/base", "")
		name, ttl := fmt.Sprintf("h-%d", i), time.Duration(2+2*i)*time.Second
		free[name] = time.Now().Add(ttl)
		g1.Take(t, "3/opt-in", gatewaytest.Named(name, gatewaytest.TTL(ttl)))
	}
	g1.Kill(t)
	g2.Await(t, "3/opt-in", "every slot free", func(a gatewaytest.Answer) bool {
		now := time.Now()
		held := make(map[string]bool)
		for _, h := range a.Holders {
			held[h.Holder] = true
			if h.ExpiresInMs <= 0 {
				t.Errorf("a holder with a TTL reads %+v", h)
			}
		}
		for name, at := range free {
			if !held[name] && now.Before(at) {
				t.Errorf("the slot of %s is free %v early: %v", name, at.Sub(now), a)
			}
		}
		return a.Held() == 0
	})
	g2.ExpectState(t, "3/base", slots, 0)
	g2.ExpectTaken(t, "3/base", "")
	g2.ExpectReset(t, "3/base")
	g2.Take(t, "3/base", "")
}

// A renewal that comes too late is a new grant, and can be told from the old.
func testB29LateRenewalGetsANewToken(t *testing.T, start starter) {
	g1, g2 := startTwo(t, start)
	query := gatewaytest.Named("a", gatewaytest.TTL(2*time.Second))
	sent := time.Now()
	before := g1.Take(t, "1/x", query)
	renewed := g2.Take(t, "1/x", query)
	if renewed.Token != before.Token && time.Since(sent) < 2*time.Second {
		t.Errorf("a renewal in time got %v, the grant was %v", renewed, before)
	}
	b := g2.Queue(t, "1/x", gatewaytest.Named("b"), 1).ExpectGrant(t)
	if passed := time.Since(sent); passed < 2*time.Second {
		t.Errorf("the slot went on after %v", passed)
	}
	g1.ExpectTaken(t, "1/x", query)
	g1.ExpectRelease(t, "1/x", gatewaytest.Named("a"), false)
	g2.ExpectRelease(t, "1/x", gatewaytest.Named("b"), true)
	after := g1.Take(t, "1/x", query)
	if before.Token >= b.Token || b.Token >= after.Token {
		t.Errorf("the tokens are %d, %d and %d", before.Token, b.Token, after.Token)
	}
}

// A holder is kept alive through one gateway or another.
func testRenewalsThroughAnyGatewayKeepTheSlot(t *testing.T, start starter) {
	g1, g2 := startTwo(t, start)
	const ttl = 8 * time.Second
	query := gatewaytest.Named("a", gatewaytest.TTL(ttl))
	last := time.Now()
	first := g1.Take(t, "1/x", query)
	b := g2.Queue(t, "1/x", gatewaytest.Named("b"), 1)
	heartbeat := time.NewTicker(ttl / 8)
	defer heartbeat.Stop()
	for i := range 16 {
		before := time.Now()
		a := []*gatewaytest.Gateway{g1, g2}[i%2].Acquire(t.Context(), "1/x", query)
		// Only a test that was held up itself may find the slot gone.
		if late := time.Since(last) >= ttl; !late && (!a.OK() || a.Token != first.Token) {
			t.Fatalf("a renewal after %v got %v, the grant was %v", time.Since(last), a, first)
		}
		if a.OK() && a.Acquired {
			last = before
		}
		<-heartbeat.C
	}
	b.ExpectGrant(t)
	if passed := time.Since(last); passed < ttl {
		t.Errorf("the slot went on %v after a renewal of %v", passed, ttl)
	}
}

// The time of a slot begins with the grant, however long it was waited for.
func testB30TTLStartsAtTheGrant(t *testing.T, start starter) {
	g1, g2 := startTwo(t, start)
	const ttl = 9 * time.Second
	g1.Take(t, "1/x", gatewaytest.Named(firstHolder, gatewaytest.TTL(ttl+time.Second)))
	a := g2.Queue(t, "1/x", gatewaytest.Named("a", gatewaytest.TTL(ttl)), 1)
	b := g1.Queue(t, "1/x", gatewaytest.Named("b"), 2)
	// The first slot frees itself when a has waited for longer than its TTL.
	granted := a.ExpectGrant(t)
	answered := time.Now()
	if granted.ExpiresInMs < ttl.Milliseconds()/2 {
		t.Errorf("the grant is %v, asked for %v", granted, ttl)
	}
	b.ExpectGrant(t)
	// The answer may have been on its way for a while, in a slow minute; it says
	// how much was left.
	if passed := time.Since(answered); passed < ttl/2 {
		t.Errorf("the slot went on %v after the grant, asked for %v", passed, ttl)
	}
}
