package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
)

// experiment is some cells that are measured in turn, and what is compared.
type experiment struct {
	cells []*cell
	rows  []row
}

// add makes a cell part of the experiment.
func (e *experiment) add(c *cell) *cell {
	e.cells = append(e.cells, c)
	return c
}

func (e *experiment) compare(rows ...row) { e.rows = append(e.rows, rows...) }

// ground is what cells stand on: servers, gateways, and for what these are
// compared with as many clients as there are gateways.
type ground struct {
	servers  *etcdServers
	gateways []*gateway
	clients  []*clientv3.Client
}

// experiments are the rows of the table of goals that are about etcd.
var experiments = []struct {
	name, title string
	of          func(context.Context, *ground) (*experiment, error)
}{
	{"uncontended", "locks that nobody else uses", uncontended},
	{"mutex", "one mutex, 64 clients", hotMutex},
	{"semaphore", "one semaphore of 100, 256 clients", fullSemaphore},
	{"handoff", "from the release until the waiter is answered", handoffs},
}

// uncontended compares acquires and releases, each a write, with raw writes.
func uncontended(_ context.Context, g *ground) (*experiment, error) {
	e := new(experiment)
	for _, n := range []int{1, 16, 128} {
		raw := e.add(g.rawWrites(n, 1))
		locks := e.add(&cell{name: count(n, "client"), gateways: g.gateways[:1]})
		for range n {
			l := gatewayLock{g.gateways[0], newMutexKey()}
			locks.clients = append(locks.clients, pairsOf(l, &exclusion{most: 1}, 0))
		}
		e.compare(
			row{"operations/s", locks.operations(), raw.operations(), atLeast(0.9)},
			row{"p50 us", locks.p50(), raw.p50(), atMost(1.15)},
			row{"client CPU us/op", locks.clientCPU(), raw.clientCPU(), goal{}},
			row{"server CPU us/op", locks.serverCPU(), raw.serverCPU(), goal{}},
			// Both ends of a round cut through operations: a little more than 2
			// may be 2.
			row{"swaps/pair", locks.swaps(), nothing, atMost(2.02)},
			row{"refused swaps/pair", locks.refusals(), nothing, goal{}},
		)
	}
	return e, nil
}

// hotMutex compares a mutex that all clients want with etcd's own, and with the
// writes that can be made one after the other.
func hotMutex(ctx context.Context, g *ground) (*experiment, error) {
	const clients = 64
	e := new(experiment)
	writes := e.add(g.rawWrites(1, 1))
	for _, n := range []int{1, len(g.gateways)} {
		locks := e.add(g.contended(mutexMax, 1, clients, n, 0))
		own, err := g.ownMutexes(ctx, clients, n)
		if err != nil {
			return nil, err
		}
		mutexes := e.add(contend(fmt.Sprintf("concurrency.Mutex, %s", count(n, "client")), 1, own.mutexes, 0))
		service := e.add(contend(fmt.Sprintf("etcd's lock service, %s", count(n, "client")), 1, own.services, 0))
		faster, ofWrites, swaps := atLeast(2.5), atLeast(0.7), atMost(1.2)
		if n > 1 {
			faster, ofWrites, swaps = atLeast(1.8), goal{}, goal{}
		}
		e.compare(
			row{"pairs/s", locks.pairs(), mutexes.pairs(), faster},
			row{"pairs/s", locks.pairs(), service.pairs(), faster},
			row{"pairs/s", locks.pairs(), writes.operations(), ofWrites},
			row{"swaps/pair", locks.swaps(), nothing, swaps},
			row{"refused swaps/pair", locks.refusals(), nothing, goal{}},
			row{"reads/pair", locks.reads(), nothing, goal{}},
		)
	}
	return e, nil
}

// fullSemaphore compares a semaphore that more want than can have it with the
// writes that as many clients make.
func fullSemaphore(_ context.Context, g *ground) (*experiment, error) {
	const slots, clients, hold = 100, 256, 5 * time.Millisecond
	e := new(experiment)
	for _, n := range []int{1, len(g.gateways)} {
		raw := e.add(g.rawWrites(clients, n))
		enough := atLeast(4)
		if n > 1 {
			enough = atLeast(0.8)
		}
		for _, held := range []time.Duration{0, hold} {
			locks := e.add(g.contended(fmt.Sprint(slots), slots, clients, n, held))
			if held > 0 {
				locks.name += fmt.Sprintf(", held %v", held)
				enough = goal{} // that is for a semaphore which the store alone slows down
				e.compare(row{"pairs/s", locks.pairs(), constant("no time lost", slots/held.Seconds()), goal{}})
			}
			e.compare(
				row{"pairs/s", locks.pairs(), raw.operations(), enough},
				row{"swaps/pair", locks.swaps(), nothing, goal{}},
				row{"refused swaps/pair", locks.refusals(), nothing, goal{}},
				row{"reads/pair", locks.reads(), nothing, goal{}},
			)
		}
	}
	return e, nil
}

// handoffs compares the way of a lock from one client to the next with the
// writes that it takes at least, and with etcd's own mutex.
func handoffs(ctx context.Context, g *ground) (*experiment, error) {
	e := new(experiment)
	// These wait before each time, too: who was idle takes longer to begin.
	write := e.add(&cell{name: "raw write", clients: []operation{after(shortWait, timed(newRawWriter(g.clients[0]).write))}})
	relay, err := newRawRelay(ctx, g.clients[0], g.clients[1])
	if err != nil {
		return nil, err
	}
	relayed := e.add(&cell{name: "raw write, heard, raw write", clients: []operation{after(shortWait, relay.pass)}})
	for _, way := range []struct {
		name             string
		n                int // gateways
		wait             time.Duration
		least            *cell
		toLeast, toMutex goal
	}{
		{"same gateway", 1, shortWait, write, atMost(1.3), atMost(1. / 40)},
		{"across gateways", 2, shortWait, relayed, atMost(1.3), atMost(1. / 15)},
		{fmt.Sprintf("same, after %v", longWait), 1, longWait, write, goal{}, goal{}},
		{fmt.Sprintf("across, after %v", longWait), 2, longWait, relayed, goal{}, goal{}},
	} {
		key := newMutexKey()
		last := g.gateways[way.n-1]
		locks := e.add(&cell{name: way.name, clients: []operation{handoff{
			lockers: [2]locker{gatewayLock{g.gateways[0], key}, gatewayLock{last, key}},
			queued: func(ctx context.Context) (int64, error) {
				v, err := last.Value(ctx, key, true)
				return v.Waiting, err
			},
			wait: way.wait,
		}.pass}, gateways: g.gateways[:way.n]})
		own, err := g.ownMutexes(ctx, 2, way.n)
		if err != nil {
			return nil, err
		}
		mutexes := e.add(&cell{name: "concurrency.Mutex", clients: []operation{handoff{
			lockers: [2]locker(own.mutexes), queued: own.queued, wait: way.wait,
		}.pass}})
		e.compare(
			row{"p50 us", locks.p50(), way.least.p50(), way.toLeast},
			row{"p50 us", locks.p50(), mutexes.p50(), way.toMutex},
			row{"swaps", locks.swaps().times(0.5), nothing, goal{}},
			row{"refused swaps", locks.refusals().times(0.5), nothing, goal{}},
			row{"reads", locks.reads().times(0.5), nothing, goal{}},
		)
	}
	return e, nil
}

// rawWrites is clients that write, each a key of its own, over n connections.
func (g *ground) rawWrites(clients, n int) *cell {
	c := &cell{name: fmt.Sprintf("raw writes, %s", count(clients, "client"))}
	for i := range clients {
		c.clients = append(c.clients, timed(newRawWriter(g.clients[i%n]).write))
	}
	return c
}

// contended is clients of n gateways that all want the same lock.
func (g *ground) contended(maxValue string, most int64, clients, n int, hold time.Duration) *cell {
	key := newKey(maxValue)
	var lockers []locker
	for i := range clients {
		lockers = append(lockers, gatewayLock{g.gateways[i%n], key})
	}
	c := contend(count(n, "gateway"), most, lockers, hold)
	c.gateways = g.gateways[:n]
	return c
}

// contend is clients that all want the same lock.
func contend(name string, most int64, lockers []locker, hold time.Duration) *cell {
	c, check := &cell{name: name}, &exclusion{most: most}
	for _, l := range lockers {
		c.clients = append(c.clients, pairsOf(l, check, hold))
	}
	return c
}

// ownLocks are lockers of etcd's own locks: one for the client's kind and one
// for the servers'.
type ownLocks struct {
	mutexes, services []locker
	queued            func(context.Context) (int64, error) // for mutexes
}

// ownMutexes returns lockers that spread over n clients. Their sessions last
// until the clients are closed.
func (g *ground) ownMutexes(ctx context.Context, lockers, n int) (own ownLocks, err error) {
	name := "/concurrency/" + newUUID()
	for i := range lockers {
		client := g.clients[i%n]
		session, err := concurrency.NewSession(client)
		if err != nil {
			return own, fmt.Errorf("a session for etcd's own locks: %w", errors.Join(err, ctx.Err()))
		}
		own.mutexes = append(own.mutexes, clientLock{concurrency.NewMutex(session, name)})
		own.services = append(own.services, &serviceLock{
			service: v3lockpb.NewLockClient(client.ActiveConnection()),
			name:    name + "/service",
			lease:   int64(session.Lease()),
		})
	}
	own.queued = func(ctx context.Context) (int64, error) {
		answer, err := g.clients[n-1].Get(ctx, name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return 0, err
		}
		return answer.Count - 1, nil // the first holds it
	}
	return own, nil
}

// count says how many.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
