package integration_test

import (
	"testing"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// which picks a member of a cluster.
var which = map[string]func(*etcdtest.Cluster, testing.TB) *etcdtest.Member{
	"leader":   (*etcdtest.Cluster).Leader,
	"follower": (*etcdtest.Cluster).Follower,
}

func TestMemberKilledUnderLoad(t *testing.T) {
	t.Parallel()
	for name, pick := range which {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd := etcdtest.StartCluster(t, 3, etcdtest.Options{})
			load := startLoad(t, startGateways(t, 2, quick, etcd)...)
			for range 2 {
				m := pick(etcd, t)
				m.Kill(t)
				load.expectProgress(t)
				m.Restart(t)
				load.expectRecovery(t)
			}
			load.stop(t)
		})
	}
}

func TestMemberFrozenUnderLoad(t *testing.T) {
	t.Parallel()
	for name, pick := range which {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd := etcdtest.StartCluster(t, 3, etcdtest.Options{})
			load := startLoad(t, startGateways(t, 2, quick, etcd)...)
			for range 2 {
				m := pick(etcd, t)
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
func TestClusterWithoutMajorityComesBack(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.StartCluster(t, 3, etcdtest.Options{})
	gateways := startGateways(t, 2, quick, etcd)
	load := startLoad(t, gateways...)
	gateways[0].Take(t, "1/held", "")
	gateways[1].Take(t, "1/held-by-name", gatewaytest.Named("h"))
	minority := etcd.Members()[:2]
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
func TestElectionKeepsTheQueue(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct {
		name       string
		fail, mend func(*etcdtest.Member, testing.TB)
	}{
		{"killed", (*etcdtest.Member).Kill, (*etcdtest.Member).Restart},
		{"frozen", (*etcdtest.Member).Pause, (*etcdtest.Member).Resume},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			etcd := etcdtest.StartCluster(t, 3, etcdtest.Options{})
			// The gateways have other members, or would be held up by its silence.
			leader := etcd.Leader(t)
			var gateways []*gatewaytest.Gateway
			for _, m := range etcd.Others(leader) {
				gateways = append(gateways, startGateway(t, "on-"+m.Name, patient, m.Endpoint()))
			}
			gateways[0].Take(t, "1/x", gatewaytest.Named(firstHolder))
			waiters := queueAll(t, "1/x", 6, gateways...)
			fault.fail(leader, t)
			etcd.Leader(t)
			expectInOrder(t, "1/x", waiters, gateways...)
			fault.mend(leader, t)
		})
	}
}
