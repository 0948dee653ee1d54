package integration_test

import (
	"testing"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
)

// A gateway that is frozen past its session wakes up with news in hand that
// are old. It must not grant by them.
func TestB1FrozenGatewayGrantsNothingItLost(t *testing.T) {
	t.Parallel()
	gateways := startGateways(t, 2, quick, etcdtest.Start(t, etcdtest.Options{}))
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
func TestGatewayFrozenWithACommittedGrant(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{})
	line := relay.New(t, etcd.Members()[0].Address())
	g1 := startGateway(t, "behind-relay", quick, "http://"+line.Address())
	g2 := startGateway(t, "beside", quick, etcd.Endpoints()...)
	g1.Take(t, "1/canary", "")
	g1.Queue(t, "1/canary", "", 1)
	g2.Queue(t, "1/canary", "", 2)

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
	// It sleeps until its session is gone, which shows in its waiter's place.
	// Somebody waits for the slot that it will give back.
	named.HangUp()
	anonymous.HangUp()
	waiter := g2.Queue(t, "1/anonymous", "", 1)
	g2.AwaitState(t, "1/canary", 1, 1)

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
func TestGatewayKilledWithACommittedGrant(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{})
	line := relay.New(t, etcd.Members()[0].Address())
	g1 := startGateway(t, "behind-relay", quick, "http://"+line.Address())
	g2 := startGateway(t, "beside", quick, etcd.Endpoints()...)
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
func TestCreateStuckInAFrozenMember(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.StartCluster(t, 3, etcdtest.Options{})
	frozen := etcd.Follower(t)
	var others []string
	for _, m := range etcd.Others(frozen) {
		others = append(others, m.Endpoint())
	}
	g1 := startGateway(t, "on-frozen-member", quick, frozen.Endpoint())
	g2 := startGateway(t, "on-the-others", quick, others...)
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

// Leases of gateways are revoked under them, as a leader did that had slept.
// Their waiters are told so at once. Slots do not hang on leases.
func TestB5RevokedSessionFailsWaitersAndFreesNothing(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{})
	gateways := startGateways(t, 2, patient, etcd)
	g1, g2 := gateways[0], gateways[1]
	g1.Take(t, "1/x", "")
	named := g1.Take(t, "1/named", gatewaytest.Named("h"))
	w1 := g1.Queue(t, "1/x", "", 1)
	w2 := g2.Queue(t, "1/x", gatewaytest.Named("w"), 2)
	etcd.RevokeLeases(t)
	w1.ExpectRefused(t)
	w2.ExpectRefused(t)
	for _, g := range gateways {
		g.AwaitState(t, "1/x", 1, 0)
		g.ExpectTaken(t, "1/x", "")
		if again := g.Take(t, "1/named", gatewaytest.Named("h")); again.Token != named.Token {
			t.Errorf("the holder is %v, was %v", again, named)
		}
	}
	again := g2.Queue(t, "1/x", "", 1)
	g1.ExpectRelease(t, "1/x", "", true)
	again.ExpectGrant(t)
}
