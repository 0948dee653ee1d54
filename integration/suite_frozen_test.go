package integration_test

import (
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
)

// A gateway that is frozen past its session wakes up with news in hand that
// are old. It must not grant by them.
func testB1FrozenGatewayGrantsNothingItLost(t *testing.T, start starter) {
	gateways := startGateways(t, 2, quick, start(t, 1))
	g1, g2 := gateways[0], gateways[1]
	g1.Take(t, "1/x", gatewaytest.Named("a"))
	b := g2.Queue(t, "1/x", gatewaytest.Named("b"), 1)
	anonymous := g2.Queue(t, "1/x", "", 2)
	g2.Pause(t)
	c := g1.Begin(t, "1/x", gatewaytest.ForLong(gatewaytest.Named("c")))
	g1.ExpectRelease(t, "1/x", gatewaytest.Named("a"), true)
	granted := c.ExpectGrant(t)
	g1.AwaitState(t, "1/x", 1, 0)

	g2.Resume(t)
	b.ExpectRefused(t)
	anonymous.ExpectRefused(t)
	g2.AwaitState(t, "1/x", 1, 0)
	if again := g2.Take(t, "1/x", gatewaytest.Named("c")); again.Token != granted.Token {
		t.Errorf("the holder is %v, was %v", again, granted)
	}
	g2.ExpectTaken(t, "1/x", gatewaytest.Named("b"))

	// It has a new session, and serves as before.
	b = g2.Queue(t, "1/x", gatewaytest.Named("b"), 1)
	g1.ExpectRelease(t, "1/x", gatewaytest.Named("c"), true)
	b.ExpectGrant(t)
}

// A gateway is frozen with a grant that is committed and that nobody was told
// of. Its client goes on elsewhere.
func testGatewayFrozenWithACommittedGrant(t *testing.T, start starter) {
	c := start(t, 1)
	line := relay.New(t, c.members()[0].Address())
	g1 := startGateway(t, "behind-relay", quick, c, line.Address())
	g2 := startGateway(t, "beside", quick, c)
	g1.Take(t, "1/canary", "")
	g1.Queue(t, "1/canary", "", 1)
	canary := g2.Queue(t, "1/canary", "", 2)

	line.Stall(relay.Answers)
	named := g1.Begin(t, "1/named", gatewaytest.Named("h"))
	anonymous := g1.Begin(t, "1/anonymous", "")
	g2.AwaitState(t, "1/named", 1, 0)
	g2.AwaitState(t, "1/anonymous", 1, 0)
	g1.Pause(t)

	retry := g2.Take(t, "1/named", gatewaytest.Named("h"))
	if retry.Held() != 1 || len(g2.State(t, "1/named").Holders) != 1 {
		t.Errorf("the retry took another slot: %v", retry)
	}
	g2.ExpectRelease(t, "1/named", gatewaytest.Named("h"), true)
	next := g2.Take(t, "1/named", gatewaytest.Named("next"))
	g2.ExpectTaken(t, "1/anonymous", "")
	// It sleeps until its session is gone: then its waiter is in nobody's way.
	// Somebody waits for the slot that it will give back.
	named.HangUp()
	anonymous.HangUp()
	waiter := g2.Queue(t, "1/anonymous", "", 1)
	g2.ExpectRelease(t, "1/canary", "", true)
	canary.ExpectGrant(t)

	g1.Resume(t)
	g1.AwaitNoticed(t)
	line.Heal()
	waiter.ExpectGrant(t)
	g1.AwaitState(t, "1/anonymous", 1, 0)
	g1.AwaitState(t, "1/named", 1, 0)
	if again := g1.Take(t, "1/named", gatewaytest.Named("next")); again.Token != next.Token {
		t.Errorf("the holder is %v, was %v", again, next)
	}
}

// The same, but the gateway never wakes up: what it held stays held.
func testGatewayKilledWithACommittedGrant(t *testing.T, start starter) {
	c := start(t, 1)
	line := relay.New(t, c.members()[0].Address())
	g1 := startGateway(t, "behind-relay", quick, c, line.Address())
	g2 := startGateway(t, "beside", quick, c)
	line.Stall(relay.Answers)
	named := g1.Begin(t, "2/named", gatewaytest.Named("h"))
	anonymous := g1.Begin(t, "1/anonymous", "")
	g2.AwaitState(t, "2/named", 1, 0)
	g2.AwaitState(t, "1/anonymous", 1, 0)
	g1.Kill(t)
	for _, r := range []*gatewaytest.Request{named, anonymous} {
		if a := r.Answer(t); a.Err == nil {
			t.Errorf("a request of the dead gateway got %v", a)
		}
	}
	token := g2.State(t, "2/named").Holders[0].Token
	if retry := g2.Take(t, "2/named", gatewaytest.Named("h")); retry.Token != token || retry.Held() != 1 {
		t.Errorf("the retry got %v, want token %d", retry, token)
	}
	g2.ExpectTaken(t, "1/anonymous", "")
	g2.ExpectReset(t, "1/anonymous")
	g2.Take(t, "1/anonymous", "")
}

// A lock's first write is stuck in a frozen member, and comes late, when the
// lock has been used by others and is free again.
func testCreateStuckInAFrozenMember(t *testing.T, start starter) {
	c := start(t, 3)
	frozen := follower(c, t)
	var rest []string
	for _, m := range others(c, frozen) {
		rest = append(rest, m.Address())
	}
	g1 := startGateway(t, "on-frozen-member", quick, c, frozen.Address())
	g2 := startGateway(t, "on-the-others", quick, c, rest...)
	g1.Take(t, "1/warm", "")
	g2.Take(t, "1/warm-too", "")

	frozen.Pause(t)
	for _, lock := range []string{"1/free", "1/held", "1/waited-for"} {
		for _, a := range []gatewaytest.Answer{
			g1.Acquire(t.Context(), lock, ""),
			g1.Acquire(t.Context(), lock, gatewaytest.Named("stuck")),
		} {
			if a.OK() {
				t.Errorf("through a frozen member, acquire was answered %v", a)
			}
		}
	}
	g2.Take(t, "1/free", "")
	g2.ExpectRelease(t, "1/free", "", true)
	held := g2.Take(t, "1/held", gatewaytest.Named("h"))
	g2.Take(t, "1/waited-for", "")
	waiter := g2.Queue(t, "1/waited-for", "", 1)

	frozen.Resume(t)
	// It serves when what was stuck has come through.
	process.Await(t, "the gateway serves again", func() bool { return g1.Acquire(t.Context(), "1/marker", gatewaytest.Named("m")).OK() })
	waiter.ExpectWaiting(t)
	for _, g := range []*gatewaytest.Gateway{g1, g2} {
		g.AwaitState(t, "1/free", 0, 0)
		g.AwaitState(t, "1/held", 1, 0)
		g.AwaitState(t, "1/waited-for", 1, 1)
	}
	if again := g1.Take(t, "1/held", gatewaytest.Named("h")); again.Token != held.Token {
		t.Errorf("the holder is %v, was %v", again, held)
	}
	g1.ExpectRelease(t, "1/waited-for", "", true)
	waiter.ExpectGrant(t)
	g1.Take(t, "1/free", "")
	g2.ExpectTaken(t, "1/free", "")
}
