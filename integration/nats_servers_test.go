package integration_test

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
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

var atOnce = flag.Int("locks-at-once", 150, "how many locks TestNATSB11TwoGatewaysAtOnceOneGrant has four clients ask for")

// Clients of two gateways ask for the same lock at the same moment, also while the
// leader steps down. One gets it at most.
func TestNATSB11TwoGatewaysAtOnceOneGrant(t *testing.T) {
	t.Parallel()
	c := startNATSWith(t, 3, natstest.Options{})
	gateways := startGateways(t, 2, patient, c)
	var next, granted atomic.Int64
	stepDown := max(int64(*atOnce/100), 50)
	const abreast = 4
	var all sync.WaitGroup
	for range abreast {
		all.Go(func() {
			for n := next.Add(1); n <= int64(*atOnce) && !t.Failed(); n = next.Add(1) {
				granted.Add(askAtOnce(t, fmt.Sprintf("1/lock-%d", n), gateways))
				if n%stepDown == 0 {
					c.StepDown(t, natsStream)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d of %d locks were granted", granted.Load(), *atOnce)
}

// askAtOnce has four clients ask for a lock at the same moment, and returns how many
// hold it.
func askAtOnce(t *testing.T, lock string, gateways []*gatewaytest.Gateway) (holders int64) {
	answers := make([]gatewaytest.Answer, 4)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			answers[i] = gateways[i%len(gateways)].Acquire(t.Context(), lock, gatewaytest.Named(fmt.Sprint(i)))
		})
	}
	all.Wait()
	unknown := 0
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
	return holders
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
