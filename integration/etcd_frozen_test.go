package integration_test

import (
	"testing"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// Leases of gateways are revoked under them, as a leader did that had slept.
// Their waiters are told so at once. Slots do not hang on leases.
func TestB5RevokedSessionFailsWaitersAndFreesNothing(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{})
	gateways := startGateways(t, 2, patient, etcdCluster{etcd})
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
