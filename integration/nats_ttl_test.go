package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// A holder with a TTL dies, with the gateway that it came through. That its key
// expires is no event; the waiter gets the slot all the same, and not early.
func TestNATSB13WaiterIsGrantedAfterTheTTLOfTheDead(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			t.Parallel()
			const ttl = 12 * time.Second
			gateways := startGateways(t, 2, patient, startNATS(t, servers))
			g1, g2 := gateways[0], gateways[1]
			sent := time.Now()
			g1.Take(t, "1/x", gatewaytest.Named("a", gatewaytest.TTL(ttl)))
			b := g2.Queue(t, "1/x", gatewaytest.Named("b"), 1)
			g1.Kill(t)
			b.ExpectGrant(t)
			passed := time.Since(sent)
			if passed < ttl {
				t.Errorf("a slot with a TTL of %v went on after %v", ttl, passed)
			}
			t.Logf("the waiter had the slot %v after the TTL of %v", passed-ttl, ttl)
		})
	}
}
