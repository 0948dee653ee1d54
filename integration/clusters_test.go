package integration_test

import (
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
)

// The functions that are called test… and take a starter are tests of gateways
// that hold on any of them. etcd_suite_test.go and nats_suite_test.go run them.

// starter starts n servers that keep the same data.
type starter func(t *testing.T, n int) cluster

// cluster is one server or several, of some store.
type cluster interface {
	// backend is the config of a gateway that uses the servers at these addresses
	// and no others. They may be those of relays.
	backend(limits timing, addresses ...string) string

	members() []member
	leader(t testing.TB) member

	// moveLeader makes another server the leader.
	moveLeader(t testing.TB)

	// tellsEnds reports whether gateways hear of it when a session of others ends.
	// If they do not, they find out when a slot is free for its places.
	tellsEnds() bool

	// revisions returns a function that reads the revision of a lock's record.
	revisions(t *testing.T, lock string) func() (uint64, error)

	// compact makes the servers forget what they need not know any more.
	compact(t testing.TB)
}

// member is a process of a cluster.
type member interface {
	Address() string
	Kill(t testing.TB)
	Restart(t testing.TB)
	Pause(t testing.TB)
	Resume(t testing.TB)
}

// expectWrite begins a request that writes a lock's record, and returns when that
// is done. Looking at the lock's value instead may write it, too, and come in
// between.
func expectWrite(t *testing.T, c cluster, lock string, begin func() *gatewaytest.Request) *gatewaytest.Request {
	t.Helper()
	revision := c.revisions(t, lock)
	before, err := revision()
	if err != nil {
		t.Fatal(err)
	}
	r := begin()
	process.Await(t, "the record of "+lock+" is written", func() bool {
		now, err := revision()
		return err == nil && now != before
	})
	return r
}

// awaitGone waits until the queue of a mutex that is held has no place of a dead
// gateway left, if gateways can know before they come to it.
func awaitGone(t *testing.T, c cluster, g *gatewaytest.Gateway, lock string, waiting int64) {
	t.Helper()
	if c.tellsEnds() {
		g.AwaitState(t, lock, 1, waiting)
	}
}

// follower returns a server that does not lead.
func follower(c cluster, t testing.TB) member {
	t.Helper()
	return others(c, c.leader(t))[0]
}

// others returns all servers but one.
func others(c cluster, than member) (others []member) {
	for _, m := range c.members() {
		if m != than {
			others = append(others, m)
		}
	}
	return others
}
