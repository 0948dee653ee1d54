package integration_test

import (
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// which picks a member of a cluster.
var which = map[string]func(cluster, testing.TB) member{
	"leader":   cluster.leader,
	"follower": follower,
}

func testMemberKilledUnderLoad(t *testing.T, start starter) {
	for name, pick := range which {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, 3)
			load := startLoad(t, startGateways(t, 2, quick, c)...)
			for range 2 {
				m := pick(c, t)
				m.Kill(t)
				load.expectProgress(t)
				m.Restart(t)
				load.expectRecovery(t)
			}
			load.stop(t)
		})
	}
}

func testMemberFrozenUnderLoad(t *testing.T, start starter) {
	for name, pick := range which {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, 3)
			load := startLoad(t, startGateways(t, 2, quick, c)...)
			for range 2 {
				m := pick(c, t)
				m.Pause(t)
				load.expectProgress(t)
				m.Resume(t)
				load.expectRecovery(t)
			}
			load.stop(t)
		})
	}
}

// Nothing can be granted without a majority, and nothing is lost.
func testClusterWithoutMajorityComesBack(t *testing.T, start starter) {
	c := start(t, 3)
	gateways := startGateways(t, 2, quick, c)
	load := startLoad(t, gateways...)
	gateways[0].Take(t, "1/held", "")
	gateways[1].Take(t, "1/held-by-name", gatewaytest.Named("h"))
	minority := c.members()[:2]
	for _, m := range minority {
		m.Kill(t)
	}
	if a := gateways[0].Acquire(t.Context(), "1/other", ""); a.OK() {
		t.Errorf("without a majority an acquire was answered %v", a)
	}
	for _, m := range minority {
		m.Restart(t)
	}
	load.expectRecovery(t)
	gateways[1].AwaitState(t, "1/held", 1, 0)
	gateways[0].AwaitState(t, "1/held-by-name", 1, 0)
	load.stop(t)
}

// Waiters outlive an election, and keep their order.
func testElectionKeepsTheQueue(t *testing.T, start starter) {
	for _, fault := range []struct {
		name       string
		fail, mend func(member, testing.TB)
	}{
		{"killed", member.Kill, member.Restart},
		{"frozen", member.Pause, member.Resume},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, 3)
			// The gateways have other members, or would be held up by its silence.
			leader := c.leader(t)
			var gateways []*gatewaytest.Gateway
			for _, m := range others(c, leader) {
				gateways = append(gateways, startGateway(t, "on-"+m.Address(), patient, c, m.Address()))
			}
			gateways[0].Take(t, "1/x", gatewaytest.Named(firstHolder))
			waiters := queueAll(t, "1/x", 6, gateways...)
			fault.fail(leader, t)
			c.leader(t)
			expectInOrder(t, "1/x", waiters, gateways...)
			fault.mend(leader, t)
		})
	}
}
