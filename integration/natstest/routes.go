package natstest

import (
	"testing"

	"github.com/lockgateway/lockgateway/integration/relay"
)

// nowhere is what servers tell of themselves with Options.Relayed. Nobody listens
// there: they are to find each other through the relays or not at all.
const nowhere = "127.0.0.1:1"

// relayRoutes starts a relay for each way between two servers.
func (c *Cluster) relayRoutes(t testing.TB) {
	t.Helper()
	c.routes = make(map[[2]*Member]*relay.Relay)
	for _, from := range c.members {
		for _, to := range c.Others(from) {
			c.routes[[2]*Member{from, to}] = relay.New(t, to.route)
		}
	}
}

// route returns the address at which one server reaches another.
func (c *Cluster) route(from, to *Member) string {
	if r, ok := c.routes[[2]*Member{from, to}]; ok {
		return r.Address()
	}
	return to.route
}

// Routes returns all that there is between a server and the others, with
// Options.Relayed.
func (c *Cluster) Routes(m *Member) (routes []*relay.Relay) {
	for ends, r := range c.routes {
		if ends[0] == m || ends[1] == m {
			routes = append(routes, r)
		}
	}
	return routes
}
