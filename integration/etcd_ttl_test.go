package integration_test

import (
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// Times are compared one way only: a slot must not be free early. From before a
// request was sent to after an answer came is at least what passed between its
// grant and the next one.

// An election restarts leases. Slots are freed late, and not early.
func TestB6ElectionsFreeNothingEarly(t *testing.T) {
	t.Parallel()
	const ttl = 12 * time.Second
	etcd := etcdtest.StartCluster(t, 3, etcdtest.Options{})
	gateways := startGateways(t, 2, patient, etcdCluster{etcd})
	g1, g2 := gateways[0], gateways[1]
	var sent time.Time
	take := func() {
		sent = time.Now()
		if a := g1.Take(t, "1/x", gatewaytest.Named("a", gatewaytest.TTL(ttl))); a.ExpiresInMs < ttl.Milliseconds() {
			t.Errorf("asked for %v, the grant says %v", ttl, a)
		}
	}
	take()
	b := g2.Queue(t, "1/x", gatewaytest.Named("b"), 1)
	for range 4 {
		etcd.MoveLeader(t)
		if b.Ended() {
			break
		}
		if a := g1.Acquire(t.Context(), "1/x", gatewaytest.Named("a")); a.OK() && a.Acquired && a.ExpiresInMs <= 0 {
			t.Errorf("a holder with a TTL reads %v", a)
		}
	}
	leader := etcd.Leader(t)
	leader.Kill(t)
	b.ExpectGrant(t)
	if passed := time.Since(sent); passed < ttl {
		t.Errorf("a slot with a TTL of %v went on after %v", ttl, passed)
	}
	leader.Restart(t)
	g2.ExpectRelease(t, "1/x", gatewaytest.Named("b"), true)
}
