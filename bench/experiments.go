package main

import (
	"context"
	"fmt"
	"time"
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

// ground is what cells stand on: a store, and gateways on it.
type ground struct {
	store    store
	gateways []*gateway
}

// experiments are the rows of the table of goals that are about stores.
var experiments = []struct {
	name, title string
	of          func(context.Context, *ground) (*experiment, error)
}{
	{"uncontended", "locks that nobody else uses", uncontended},
	{"mutex", "one mutex, 64 clients", hotMutex},
	{"semaphore", "one semaphore of 100, 256 clients", fullSemaphore},
	{"handoff", "from the release until the waiter is answered", handoffs},
	{"values", "how many hold a mutex, asked of one gateway", values},
}

// uncontended compares acquires and releases, each a write, with raw writes.
func uncontended(_ context.Context, g *ground) (*experiment, error) {
	e, goals := new(experiment), g.store.goals()
	for _, n := range []int{1, 16, 128} {
		raw := e.add(g.rawWrites(n, 1))
		locks := e.add(&cell{name: count(n, "client"), gateways: g.gateways[:1]})
		for range n {
			l := gatewayLock{g.gateways[0], newMutexKey()}
			locks.clients = append(locks.clients, pairsOf(l, &exclusion{most: 1}, 0))
		}
		e.compare(
			row{"operations/s", locks.operations(), raw.operations(), goals.uncontended},
			row{"p50 us", locks.p50(), raw.p50(), goals.uncontendedP50},
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

// hotMutex compares a mutex that all clients want with the store's own, and with
// the writes that can be made one after the other.
func hotMutex(ctx context.Context, g *ground) (*experiment, error) {
	const clients = 64
	e := new(experiment)
	writes := e.add(g.rawWrites(1, 1))
	for _, n := range []int{1, len(g.gateways)} {
		locks := e.add(g.contended(mutexMax, 1, clients, n, 0))
		own, err := g.store.ownLocks(ctx, clients, n)
		if err != nil {
			return nil, err
		}
		faster, ofWrites, swaps := atLeast(2.5), g.store.goals().mutex, atMost(1.2)
		if n > 1 {
			faster, ofWrites, swaps = atLeast(1.8), goal{}, goal{}
		}
		for _, o := range own {
			theirs := e.add(contend(fmt.Sprintf("%s, %s", o.name, count(n, "client")), 1, o.lockers, 0))
			e.compare(row{"pairs/s", locks.pairs(), theirs.pairs(), faster})
		}
		e.compare(
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
		enough := g.store.goals().semaphore
		if n > 1 {
			enough = g.store.goals().semaphoreAcross
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
// writes that it takes at least, and with the store's own locks.
func handoffs(ctx context.Context, g *ground) (*experiment, error) {
	e := new(experiment)
	// These wait before each time, too: who was idle takes longer to begin.
	write := e.add(&cell{name: "raw write", clients: []operation{after(shortWait, timed(g.store.newWriter(0)))}})
	relay, err := g.store.newRelay(ctx)
	if err != nil {
		return nil, err
	}
	relayed := e.add(&cell{name: "raw write, heard, raw write", clients: []operation{after(shortWait, relay.pass)}})
	for _, way := range []struct {
		name           string
		n              int // gateways
		wait           time.Duration
		least          *cell
		toLeast, toOwn goal
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
		e.compare(row{"p50 us", locks.p50(), way.least.p50(), way.toLeast})
		own, err := g.store.ownLocks(ctx, 2, way.n)
		if err != nil {
			return nil, err
		}
		for _, o := range own {
			if o.queued == nil {
				continue
			}
			theirs := e.add(&cell{name: o.name, clients: []operation{handoff{
				lockers: [2]locker(o.lockers), queued: o.queued, wait: way.wait,
			}.pass}})
			e.compare(row{"p50 us", locks.p50(), theirs.p50(), way.toOwn})
		}
		e.compare(
			row{"swaps", locks.swaps().half(), nothing, goal{}},
			row{"refused swaps", locks.refusals().half(), nothing, goal{}},
			row{"reads", locks.reads().half(), nothing, goal{}},
		)
	}
	return e, nil
}

// values are answers that change nothing. Where reads may be old each needs a
// swap that changes nothing either; those who ask at the same time share it.
func values(ctx context.Context, g *ground) (*experiment, error) {
	e, gate, key := new(experiment), g.gateways[0], newMutexKey()
	if err := (gatewayLock{gate, key}).lock(ctx); err != nil { // of what nobody used there is nothing to say
		return nil, err
	}
	write := e.add(g.rawWrites(1, 1))
	for _, n := range []int{1, 16, 64} {
		asked := e.add(&cell{name: count(n, "client"), gateways: g.gateways[:1]})
		for range n {
			asked.clients = append(asked.clients, timed(func(ctx context.Context) error {
				v, err := gate.Value(ctx, key, false)
				if err == nil && v.Held != 1 {
					err = fmt.Errorf("the mutex has %d holders", v.Held)
				}
				return err
			}))
		}
		e.compare(
			row{"values/s", asked.operations(), write.operations(), goal{}},
			row{"p50 us", asked.p50(), write.p50(), goal{}},
			row{"swaps/value", asked.swaps().half(), nothing, goal{}},
			row{"reads/value", asked.reads().half(), nothing, goal{}},
			row{"server CPU us/value", asked.serverCPU(), write.serverCPU(), goal{}},
		)
	}
	return e, nil
}

// rawWrites is clients that write, each a key of its own, over n connections.
func (g *ground) rawWrites(clients, n int) *cell {
	c := &cell{name: fmt.Sprintf("raw writes, %s", count(clients, "client"))}
	for i := range clients {
		c.clients = append(c.clients, timed(g.store.newWriter(i%n)))
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

// count says how many.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
