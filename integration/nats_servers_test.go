package integration_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/natstest"
)

// What NATS in particular is known to have done to locks when its servers failed.

// The leader steps down again and again. Nobody holds beside another, and all
// gateways get on.
func TestNATSB11LeadersStepDownUnderLoad(t *testing.T) {
	t.Parallel()
	c := startNATSWith(t, 3, natstest.Options{})
	load := startLoad(t, startGateways(t, 3, quick, c)...)
	for range 8 {
		c.StepDown(t, natsStream)
		load.mutex.AwaitGrants(t, 10)
	}
	load.expectRecovery(t)
	load.stop(t)
}

// Clients of two gateways ask for the same lock at the same moment, also while the
// leader steps down. One gets it at most.
func TestNATSB11TwoGatewaysAtOnceOneGrant(t *testing.T) {
	t.Parallel()
	c := startNATSWith(t, 3, natstest.Options{})
	gateways := startGateways(t, 2, patient, c)
	granted := 0
	for round := range 150 {
		if round%50 == 49 {
			c.StepDown(t, natsStream)
		}
		lock := fmt.Sprintf("1/round-%d", round)
		const clients = 4
		answers := make([]gatewaytest.Answer, clients)
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() { answers[i] = gateways[i%2].Acquire(t.Context(), lock, gatewaytest.Named(fmt.Sprint(i))) })
		}
		all.Wait()
		holders, unknown := 0, 0
		for _, a := range answers {
			switch {
			case a.OK() && a.Acquired:
				holders++
			case a.Unknown():
				unknown++
			}
		}
		if holders > 1 || holders == 0 && unknown == 0 {
			t.Errorf("%d clients hold %s: %v", holders, lock, answers)
		}
		granted += holders
	}
	t.Logf("%d grants", granted)
}

// One server dies, the others freeze and thaw. What was granted before stays so.
func TestNATSB12GrantOutlivesAServerThatDies(t *testing.T) {
	t.Parallel()
	c := startNATSWith(t, 3, natstest.Options{SyncAlways: true})
	gateways := startGateways(t, 2, patient, c)
	g1, g2 := gateways[0], gateways[1]
	g1.Take(t, "1/x", "")
	named := g1.Take(t, "1/named", gatewaytest.Named("a"))
	dead := c.leader(t)
	dead.Kill(t)
	for _, m := range others(c, dead) {
		m.Pause(t)
	}
	for _, m := range others(c, dead) {
		m.Resume(t)
	}
	for _, g := range []*gatewaytest.Gateway{g2, g1} {
		g.AwaitState(t, "1/x", 1, 0)
		g.ExpectTaken(t, "1/x", "")
		g.ExpectTaken(t, "1/named", gatewaytest.Named("b"))
	}
	dead.Restart(t)
	if again := g2.Take(t, "1/named", gatewaytest.Named("a")); again.Token != named.Token {
		t.Errorf("the holder is %v, was %v", again, named)
	}
	g2.ExpectRelease(t, "1/x", "", true)
	g1.Take(t, "1/x", "")
}

// All servers die at once while locks are held and waited for, and come back. As
// they sync what they acknowledge, everything is as it was.
func TestNATSB27AllServersRestartAndLocksStayHeld(t *testing.T) {
	t.Parallel()
	c := startNATSWith(t, 3, natstest.Options{SyncAlways: true})
	gateways := startGateways(t, 2, patient, c)
	g1, g2 := gateways[0], gateways[1]
	g1.Take(t, "3/semaphore", "")
	g2.Take(t, "3/semaphore", "")
	named := g1.Take(t, "1/named", gatewaytest.Named("h"))
	g1.Take(t, "1/x", gatewaytest.Named(firstHolder))
	waiters := queueAll(t, "1/x", 4, gateways...)
	load := startLoad(t, gateways...)
	for _, m := range c.members() {
		m.Kill(t)
	}
	if a := g1.Acquire(t.Context(), "1/other", ""); a.OK() {
		t.Errorf("without servers an acquire was answered %v", a)
	}
	for _, m := range c.members() {
		m.Restart(t)
	}
	load.expectRecovery(t)
	for _, g := range gateways {
		g.AwaitState(t, "3/semaphore", 2, 0)
		g.ExpectTaken(t, "1/named", gatewaytest.Named("other"))
		if again := g.Take(t, "1/named", gatewaytest.Named("h")); again.Token != named.Token {
			t.Errorf("the holder is %v, was %v", again, named)
		}
	}
	expectInOrder(t, "1/x", waiters, gateways...)
	load.stop(t)
}
