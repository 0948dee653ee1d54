package integration_test

import (
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/relay"
)

// The servers lose each other, and each gateway keeps its server. The side with the
// majority serves; what is asked of the other is refused, also while its server
// still believes that it leads. Nothing is granted twice, and when the servers find
// each other again all serve by themselves.
func TestNATSServersLoseEachOther(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct {
		name      string
		alone     func(cluster, testing.TB) member
		partition func(*relay.Relay)
	}{
		{"leader cut off", cluster.leader, (*relay.Relay).Cut},
		{"leader not heard of", cluster.leader, func(r *relay.Relay) { r.Stall() }},
		{"follower cut off", follower, (*relay.Relay).Cut},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			c := startNATSWith(t, 3, natstest.Options{NoAdvertise: true, Relayed: true})
			alone := fault.alone(c, t).(*natstest.Member)
			few := startGateway(t, "minority", quick, c, alone.Address())
			var addresses []string
			for _, m := range others(c, alone) {
				addresses = append(addresses, m.Address())
			}
			many := startGateway(t, "majority", quick, c, addresses...)
			few.Take(t, "1/held", "")
			many.Take(t, "1/other-held", "")
			load := startLoad(t, few, many)

			for _, r := range c.Routes(alone) {
				fault.partition(r)
			}
			var asked []*gatewaytest.Request
			for _, lock := range []string{"1/new", "1/held", "1/other-held"} {
				for _, query := range []string{"", gatewaytest.Named("h")} {
					asked = append(asked, few.Begin(t, lock, query))
				}
			}
			for _, r := range asked {
				if a := r.Answer(t); !a.Refused() && !a.Unknown() || a.Err != nil {
					t.Errorf("without a majority an acquire was answered %v", a)
				}
			}
			load.mutex.AwaitGrantsThrough(t, many.Client, 10)
			load.semaphore.AwaitGrantsThrough(t, many.Client, 10)
			many.ExpectTaken(t, "1/held", "")
			many.Take(t, "1/meanwhile", "")

			for _, r := range c.Routes(alone) {
				r.Heal()
			}
			load.expectRecovery(t)
			for _, g := range []*gatewaytest.Gateway{few, many} {
				for _, lock := range []string{"1/held", "1/other-held", "1/meanwhile"} {
					g.AwaitState(t, lock, 1, 0)
					g.ExpectTaken(t, lock, "")
				}
			}
			load.stop(t)
		})
	}
}
