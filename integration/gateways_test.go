package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/observer"
	"github.com/lockgateway/lockgateway/integration/process"
)

// timing has the time-outs of gateways.
type timing struct{ session, request time.Duration }

var (
	// quick is for tests in which something fails: sessions end soon, though
	// not in an election of etcd's, which takes a second or two. In one of NATS's
	// they may.
	quick = timing{session: 6 * time.Second, request: 3 * time.Second}

	// patient is for tests in which nobody's time runs out, also not in a slow
	// minute.
	patient = timing{session: time.Minute, request: 20 * time.Second}
)

// startGateway starts a gateway on the servers at the given addresses, by default
// on all.
func startGateway(t *testing.T, name string, limits timing, c cluster, addresses ...string) *gatewaytest.Gateway {
	t.Helper()
	if len(addresses) == 0 {
		for _, m := range c.members() {
			addresses = append(addresses, m.Address())
		}
	}
	return gatewaytest.Start(t, name, c.backend(limits, addresses...))
}

// startGateways starts n gateways on a cluster, or takes them from one that they
// are.
func startGateways(t *testing.T, n int, limits timing, c cluster) (gateways []*gatewaytest.Gateway) {
	t.Helper()
	if nodes, ok := c.(embeddedCluster); ok {
		return nodes.gateways(t, limits)[:n]
	}
	for i := range n {
		gateways = append(gateways, startGateway(t, fmt.Sprintf("gateway-%d", i+1), limits, c))
	}
	return gateways
}

// startTwo starts a server and two gateways, for tests in which neither fails.
func startTwo(t *testing.T, start starter) (g1, g2 *gatewaytest.Gateway) {
	t.Helper()
	gateways := startGateways(t, 2, patient, start(t, 1))
	return gateways[0], gateways[1]
}

// load is clients at work on several locks through all gateways.
type load struct {
	gateways                    []*gatewaytest.Gateway
	mutex, semaphore, anonymous *observer.Observer
}

// startLoad starts it and returns when it runs.
func startLoad(t *testing.T, gateways ...*gatewaytest.Gateway) *load {
	t.Helper()
	var clients []*gatewaytest.Client
	for _, g := range gateways {
		clients = append(clients, g.Client)
	}
	l := &load{
		gateways:  gateways,
		mutex:     observer.Named("load", 1, clients...),
		semaphore: observer.Named("load", 3, clients...),
		anonymous: observer.Anonymous("load", 9, clients...),
	}
	const workers = 5
	l.mutex.Start(t, workers)
	l.semaphore.Start(t, workers)
	l.anonymous.Start(t, workers)
	l.expectRecovery(t)
	return l
}

// expectProgress waits until the locks change hands again. Those of anonymous
// holders need not: what had an unknown outcome may be held for ever.
func (l *load) expectProgress(t *testing.T) {
	t.Helper()
	const enough = 15
	l.mutex.AwaitGrants(t, enough)
	l.semaphore.AwaitGrants(t, enough)
}

// expectRecovery waits until they do so through every gateway.
func (l *load) expectRecovery(t *testing.T) {
	t.Helper()
	for _, g := range l.gateways {
		l.mutex.AwaitGrantsThrough(t, g.Client, 3)
		l.semaphore.AwaitGrantsThrough(t, g.Client, 3)
	}
	l.expectProgress(t)
}

// stop ends the load, and fails the test if a promise was broken.
func (l *load) stop(t *testing.T) {
	t.Helper()
	l.mutex.Stop(t)
	l.semaphore.Stop(t)
	l.anonymous.Stop(t)
}

// queueAll queues a waiter through each of the gateways in turn, n in all, each
// once the one before has its place. The lock has none waiting before.
func queueAll(t *testing.T, lock string, n int, gateways ...*gatewaytest.Gateway) (waiters []*gatewaytest.Request) {
	t.Helper()
	for i := range n {
		g := gateways[i%len(gateways)]
		waiters = append(waiters, g.Queue(t, lock, gatewaytest.Named(fmt.Sprintf("waiter-%d", i)), int64(i+1)))
	}
	return waiters
}

// firstHolder holds a lock before its waiters do.
const firstHolder = "first"

// expectInOrder releases the slot of a mutex, again and again, and checks that
// it goes to one waiter after the other. At first firstHolder has it.
func expectInOrder(t *testing.T, lock string, waiters []*gatewaytest.Request, by ...*gatewaytest.Gateway) {
	t.Helper()
	holder := firstHolder
	var token uint64
	for i, w := range waiters {
		for _, later := range waiters[i:] {
			later.ExpectWaiting(t)
		}
		release(t, lock, gatewaytest.Named(holder), by[i%len(by)])
		a := w.ExpectGrant(t)
		if a.Held() != 1 || a.Token <= token {
			t.Fatalf("waiter %d got %v after token %d", i, a, token)
		}
		token = a.Token
		by[0].Await(t, lock, "the holder that was told so", func(a gatewaytest.Answer) bool {
			if len(a.Holders) != 1 || a.Holders[0].Token != token {
				t.Fatalf("the holders are %v, want the one with token %d", a.Holders, token)
			}
			holder = a.Holders[0].Holder
			return true
		})
	}
	release(t, lock, gatewaytest.Named(holder), by[0])
	by[0].AwaitState(t, lock, 0, 0)
}

// release releases a named slot, also while the store does not serve: with a
// name it can be repeated.
func release(t *testing.T, lock, query string, g *gatewaytest.Gateway) {
	t.Helper()
	process.Await(t, "a release of "+lock+" is answered", func() bool {
		return g.Release(t.Context(), lock, query).OK()
	})
}
