package integration_test

import (
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
)

// startBehindRelay starts a server and two gateways: the first reaches it
// through the relay.
func startBehindRelay(t *testing.T, start starter, limits timing) (c cluster, line *relay.Relay, behind, beside *gatewaytest.Gateway) {
	t.Helper()
	c = start(t, 1)
	line = relay.New(t, c.members()[0].Address())
	behind = startGateway(t, "behind-relay", limits, c, line.Address())
	beside = startGateway(t, "beside", limits, c)
	// Both have their session.
	behind.Take(t, "9/warm", "")
	beside.Take(t, "9/warm", "")
	return c, line, behind, beside
}

// partitions are ways to lose the store.
var partitions = map[string]func(*relay.Relay){
	"cut":    (*relay.Relay).Cut,
	"silent": func(r *relay.Relay) { r.Stall() },
	"deaf":   func(r *relay.Relay) { r.Stall(relay.Answers) },
}

func testPartitionedGateway(t *testing.T, start starter) {
	for name, partition := range partitions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, line, g1, g2 := startBehindRelay(t, start, quick)
			g1.Take(t, "1/x", gatewaytest.Named("a"))
			lost := g1.Queue(t, "1/x", gatewaytest.Named("lost"), 1)
			next := g2.Queue(t, "1/x", gatewaytest.Named("next"), 2)
			partition(line)

			// It says by itself that it cannot.
			for _, query := range []string{"", gatewaytest.Named("b"), gatewaytest.Wait(time.Second)} {
				if a := g1.Begin(t, "1/x", query).Answer(t); !a.Refused() && !a.Unknown() || a.Err != nil {
					t.Errorf("without the store, an acquire (%s) was answered %v", query, a)
				}
			}
			if a := g1.Value(t.Context(), "1/x"); !a.Refused() && !a.Unknown() || a.Err != nil {
				t.Errorf("without the store, a value was answered %v", a)
			}
			// The others go on, past its waiters.
			awaitGone(t, c, g2, "1/x", 1)
			g2.ExpectRelease(t, "1/x", gatewaytest.Named("a"), true)
			granted := next.ExpectGrant(t)

			line.Heal()
			lost.ExpectRefused(t)
			process.Await(t, "the gateway serves again", func() bool {
				a := g1.Acquire(t.Context(), "1/x", gatewaytest.Named("next"))
				return a.OK() && a.Acquired && a.Token == granted.Token
			})
			g1.AwaitState(t, "1/x", 1, 0)
			again := g1.Queue(t, "1/x", gatewaytest.Named("lost"), 1)
			g2.ExpectRelease(t, "1/x", gatewaytest.Named("next"), true)
			again.ExpectGrant(t)
		})
	}
}

func testPartitionsUnderLoad(t *testing.T, start starter) {
	_, line, g1, g2 := startBehindRelay(t, start, quick)
	load := startLoad(t, g1, g2)
	for _, partition := range partitions {
		partition(line)
		load.expectProgress(t)
		line.Heal()
		load.expectRecovery(t)
	}
	load.stop(t)
}

func testLostRepliesUnderLoad(t *testing.T, start starter) {
	_, line, g1, g2 := startBehindRelay(t, start, quick)
	load := startLoad(t, g1, g2)
	for range 10 {
		line.LoseAnswers(2)
		load.expectProgress(t)
	}
	load.stop(t)
	if line.Lost() == 0 {
		t.Error("no reply was lost")
	}
}

// An operation is committed and the reply is lost: what the client is told is
// what the lock has, and it is done once.
func testLostReplyIsFoundOut(t *testing.T, start starter) {
	c, line, g1, g2 := startBehindRelay(t, start, patient)
	lose := func() { line.Cut(); line.Heal() }

	for _, query := range []string{"", gatewaytest.Named("h")} {
		lock := "3/acquired" + query
		line.Stall(relay.Answers)
		acquire := g1.Begin(t, lock, query)
		g2.AwaitState(t, lock, 1, 0)
		lose()
		if a := acquire.Answer(t); a.OK() {
			if !a.Acquired || a.Held() != 1 {
				t.Errorf("the acquire (%s) was answered %v", query, a)
			}
			g1.ExpectState(t, lock, 1, 0)
		} else {
			expectUndone(t, g2, lock, a)
		}
	}

	g1.Take(t, "3/released", "")
	g1.Take(t, "3/released", "")
	line.Stall(relay.Answers)
	release := expectWrite(t, c, "3/released", func() *gatewaytest.Request {
		return g1.BeginRelease(t, "3/released", "")
	})
	g2.AwaitState(t, "3/released", 1, 0)
	lose()
	if a := release.Answer(t); !a.Unknown() && (!a.OK() || !a.Released) {
		t.Errorf("the release was answered %v", a)
	}
	// A repetition would come now at the latest.
	process.Await(t, "the gateway serves again", func() bool { return g1.Value(t.Context(), "3/released").OK() })
	g1.ExpectState(t, "3/released", 1, 0)
	g2.ExpectState(t, "3/released", 1, 0)
}

// expectUndone checks that an acquire that was not answered well, though it was
// committed, is given back.
func expectUndone(t *testing.T, g *gatewaytest.Gateway, lock string, a gatewaytest.Answer) {
	t.Helper()
	if a.Err != nil {
		t.Errorf("an acquire of %s got %v", lock, a)
	}
	g.AwaitState(t, lock, 0, 0)
}

// A's release is committed, the answer is lost, and B gets the slot. A repeats.
// Another holder is there from beginning to end, so that the release is one
// write and nothing else.
func testB4RepeatedReleaseHarmsNobody(t *testing.T, start starter) {
	c, line, g1, g2 := startBehindRelay(t, start, patient)

	t.Run("holder", func(t *testing.T) {
		g1.Take(t, "2/named", gatewaytest.Named("other"))
		g1.Take(t, "2/named", gatewaytest.Named("a"))
		line.Stall(relay.Answers)
		defer line.Heal()
		first := expectWrite(t, c, "2/named", func() *gatewaytest.Request {
			return g1.BeginRelease(t, "2/named", gatewaytest.Named("a"))
		})
		g2.AwaitState(t, "2/named", 1, 0)
		first.HangUp()
		b := g2.Take(t, "2/named", gatewaytest.Named("b"))
		line.Cut()
		line.Heal()
		g2.ExpectRelease(t, "2/named", gatewaytest.Named("a"), false)
		process.Await(t, "the gateway serves again", func() bool {
			a := g1.Release(t.Context(), "2/named", gatewaytest.Named("a"))
			if a.OK() && a.Released {
				t.Errorf("the repeated release was answered %v", a)
			}
			return a.OK()
		})
		if again := g1.Take(t, "2/named", gatewaytest.Named("b")); again.Token != b.Token {
			t.Errorf("b got %v, and then %v", b, again)
		}
	})

	// Here it is the gateway that must not repeat what it is in doubt about.
	t.Run("anonymous", func(t *testing.T) {
		g1.Take(t, "2/anonymous", "")
		g1.Take(t, "2/anonymous", "")
		line.Stall(relay.Answers)
		defer line.Heal()
		first := expectWrite(t, c, "2/anonymous", func() *gatewaytest.Request {
			return g1.BeginRelease(t, "2/anonymous", "")
		})
		g2.AwaitState(t, "2/anonymous", 1, 0)
		g2.Take(t, "2/anonymous", "")
		line.Cut()
		line.Heal()
		if a := first.Answer(t); !a.Unknown() && (!a.OK() || !a.Released) {
			t.Errorf("the release was answered %v", a)
		}
		awaitServing(t, g1)
		g1.ExpectState(t, "2/anonymous", 2, 0)
		g2.ExpectState(t, "2/anonymous", 2, 0)
	})
}

// A's own time-out is shorter than the store's pause; its acquire takes effect
// when it has left.
func testB22ClientTimeOutDuringStallTakesNothing(t *testing.T, start starter) {
	_, line, g1, g2 := startBehindRelay(t, start, quick)
	for _, test := range []struct {
		name, lock, query string
		repeat            bool // the pause outlasts the gateway's own patience
	}{
		{"short, anonymous", "1/short", "", false},
		{"short, holder", "1/short-named", gatewaytest.Named("a"), false},
		{"long, anonymous", "1/long", "", true},
		{"long, holder", "1/long-named", gatewaytest.Named("a"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			line.Stall(relay.Answers)
			leaving := g1.Begin(t, test.lock, test.query)
			staying := g1.Begin(t, test.lock+"-stays", "")
			g2.AwaitState(t, test.lock, 1, 0)
			leaving.HangUp()
			g1.AwaitNoticed(t)
			if test.repeat {
				if a := staying.Answer(t); a.OK() || a.Err != nil {
					t.Errorf("without the store, an acquire was answered %v", a)
				}
			}
			line.Heal()
			g2.AwaitState(t, test.lock, 0, 0)
			g2.Take(t, test.lock, "")
		})
	}

	t.Run("retry", func(t *testing.T) {
		line.Stall(relay.Answers)
		first := g1.Begin(t, "2/retry", gatewaytest.Named("a"))
		g2.AwaitState(t, "2/retry", 1, 0)
		first.HangUp()
		g1.AwaitNoticed(t)
		token := g2.State(t, "2/retry").Holders[0].Token
		retry := g2.Take(t, "2/retry", gatewaytest.Named("a"))
		if retry.Token != token || retry.Held() != 1 {
			t.Errorf("the retry got %v, want token %d", retry, token)
		}
		line.Heal()
		// The first answer, which nobody read, goes back; the second stays.
		awaitServing(t, g1)
		g2.ExpectState(t, "2/retry", 1, 0)
		g2.ExpectRelease(t, "2/retry", gatewaytest.Named("a"), true)
	})
}

// awaitServing waits until a gateway has been through a round with its store,
// and has nothing left to do from before.
func awaitServing(t *testing.T, g *gatewaytest.Gateway) {
	t.Helper()
	for range 20 {
		process.Await(t, "the gateway serves again", func() bool {
			return g.Release(t.Context(), "1/nothing", gatewaytest.Named("nobody")).OK()
		})
	}
}

// The first connection of a holder dies while its retry is answered elsewhere.
func testHolderKeepsItsSlotWhenItsFirstConnectionDies(t *testing.T, start starter) {
	c, line, g1, g2 := startBehindRelay(t, start, patient)
	for range 5 {
		line.Stall(relay.Answers)
		first := expectWrite(t, c, "1/x", func() *gatewaytest.Request {
			return g1.Begin(t, "1/x", gatewaytest.Named("h"))
		})
		g2.AwaitState(t, "1/x", 1, 0)
		retry := g2.Take(t, "1/x", gatewaytest.Named("h"))
		first.HangUp()
		g1.AwaitNoticed(t)
		line.Heal()
		awaitServing(t, g1)
		for _, g := range []*gatewaytest.Gateway{g1, g2} {
			g.ExpectState(t, "1/x", 1, 0)
			g.ExpectTaken(t, "1/x", "")
			if again := g.Take(t, "1/x", gatewaytest.Named("h")); again.Token != retry.Token {
				t.Errorf("the holder got %v, and then %v", retry, again)
			}
		}
		g1.ExpectRelease(t, "1/x", gatewaytest.Named("h"), true)
	}
}
