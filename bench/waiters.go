package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"
)

const (
	heapPerWaiter = 1024 // bytes beyond a handler that just blocks: the goal
	heapLeft      = 16   // bytes that a second crowd may leave for each of it: what counts as nothing
	routinesLeft  = 10   // the server's own come and go
)

// crowdMemory is a server's memory before, with and after a first crowd, and
// after a second one. What the first leaves is mostly what Go keeps for the
// next goroutines, and the second finds that; what the second leaves is lost.
type crowdMemory struct{ before, with, after, again memory }

// measureWaiters compares the memory of requests that wait for a lock with that
// of requests in a handler that only blocks, and checks that the queue is
// served in order and leaves nothing behind.
func measureWaiters(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("waiters", flag.ExitOnError)
	wanted := flags.Int("n", 50_000, "number of requests that wait")
	http1 := flags.Bool("http1", false, "wait on connections, as many as the limit of open files allows, instead of on HTTP/2 streams")
	_ = flags.Parse(args) // exits
	if *wanted < 1 {
		return fmt.Errorf("-n must be positive")
	}
	crowds := measurement{n: *wanted, send: connections, hangUp: func() {}, protocol: "HTTP/1.1"}
	if *http1 {
		n, err := raiseOpenFiles(*wanted)
		if err != nil {
			return err
		}
		if n < *wanted {
			fmt.Printf("the limit of open files allows %d waiters, not %d\n", n, *wanted)
		}
		crowds.n = n
	} else {
		s := newStreams()
		defer s.close()
		crowds.send, crowds.hangUp, crowds.protocol = s.send, s.close, "HTTP/2"
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := buildCaddy(ctx, dir, ".", "./cmd/blockingcaddy")
	if err != nil {
		return err
	}
	// Each has a process of its own: what goroutines once needed is kept for
	// the next ones, so the second crowd in a process would look cheaper.
	blocking, err := crowds.withServer(ctx, dir, binary, "block", crowds.block)
	if err != nil {
		return fmt.Errorf("the handler that blocks: %w", err)
	}
	locking, err := crowds.withServer(ctx, dir, binary, "lock_gateway", crowds.lock)
	if err != nil {
		return fmt.Errorf("the gateway: %w", err)
	}
	return crowds.report(blocking, locking)
}

// measurement is what kind of crowd is measured.
type measurement struct {
	n        int
	send     sender
	hangUp   func() // closes what connections are left when the requests have ended
	protocol string
}

// withServer starts a server with one site for one measurement.
func (k measurement) withServer(ctx context.Context, dir, binary, directive string,
	measure func(context.Context, *server, string) (crowdMemory, error),
) (crowdMemory, error) {
	at, err := newSite(directive)
	if err != nil {
		return crowdMemory{}, err
	}
	s, err := startServer(ctx, dir, binary, []site{at})
	if err != nil {
		return crowdMemory{}, err
	}
	defer func() { _ = s.stop() }()
	first, err := measure(ctx, s, at.address)
	if err != nil {
		return first, err
	}
	second, err := measure(ctx, s, at.address)
	first.again = second.after
	return first, err
}

// block lets n requests block, and leave.
func (k measurement) block(ctx context.Context, s *server, address string) (m crowdMemory, err error) {
	ask := requestFor(address, "/blocked")
	count := func(c *client) (int, error) {
		body, err := c.do(ask)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(string(body))
	}
	if m.before, err = s.memory(ctx); err != nil {
		return m, err
	}
	// A path as long as that of an acquire: the request is in the heap.
	g, err := gather(ctx, k.send, address, acquirePath(newUUID()), k.n, count)
	if err != nil {
		return m, err
	}
	defer g.close()
	if m.with, err = s.memory(ctx); err != nil {
		return m, err
	}
	g.leave()
	if err := g.until(ctx, 0, count); err != nil {
		return m, err
	}
	k.hangUp()
	m.after, err = s.memoryWithout(ctx, m.before)
	return m, err
}

// lock lets n requests wait for a lock that is held, and hands it to one after
// the other.
func (k measurement) lock(ctx context.Context, s *server, address string) (m crowdMemory, err error) {
	id := newUUID()
	release := requestFor(address, "/v1/1/"+id+"/release")
	count := waitingFor(requestFor(address, "/v1/1/"+id+"/value?detail=1"))
	if m.before, err = s.memory(ctx); err != nil {
		return m, err
	}
	holder, err := dial(address)
	if err != nil {
		return m, err
	}
	defer holder.close()
	if err := holder.expect(requestFor(address, acquirePath(id)), acquiredBody); err != nil {
		return m, err
	}
	g, err := gather(ctx, k.send, address, acquirePath(id), k.n, count)
	if err != nil {
		return m, err
	}
	defer g.close()
	if m.with, err = s.memory(ctx); err != nil {
		return m, err
	}
	if err := g.serve(release); err != nil {
		return m, err
	}
	if err := g.control.expect(release, `{"released":true}`); err != nil {
		return m, err
	}
	g.leave()
	k.hangUp()
	holder.close()
	m.after, err = s.memoryWithout(ctx, m.before)
	return m, err
}

// acquirePath asks for a lock and would wait for an hour.
func acquirePath(id string) string { return "/v1/1/" + id + "/acquire?waitTimeoutMs=3600000" }

// waitingFor returns a function that asks how many wait for a lock.
func waitingFor(ask []byte) func(*client) (int, error) {
	return func(c *client) (int, error) {
		body, err := c.do(ask)
		if err != nil {
			return 0, err
		}
		var value struct{ Waiting int }
		err = json.Unmarshal(body, &value)
		return value.Waiting, err
	}
}

// serve releases the lock once for each who waits. Each release frees one slot,
// so if the i-th is followed by the i-th waiter's answer, for every i, the queue
// is served in order.
func (g *crowd) serve(release []byte) error {
	for i, w := range g.waiting {
		if err := g.control.expect(release, `{"released":true}`); err != nil {
			return fmt.Errorf("release %d: %w", i, err)
		}
		body, err := w.await()
		if err != nil {
			return fmt.Errorf("waiter %d is not the one that got the lock after %d others: %w", i, i, err)
		}
		if string(body) != acquiredBody {
			return fmt.Errorf("waiter %d is answered %s", i, body)
		}
	}
	return nil
}

// memoryWithout measures when the connections' goroutines are gone, or will not
// go: the server notices a closed connection a moment later.
func (s *server) memoryWithout(ctx context.Context, before memory) (memory, error) {
	for try := 0; ; try++ {
		m, err := s.memory(ctx)
		if err != nil || try == 20 || m.goroutines <= before.goroutines+routinesLeft {
			return m, err
		}
		time.Sleep(250 * time.Millisecond)
	}
}

func (k measurement) report(blocking, locking crowdMemory) error {
	each := func(bytes int64) int64 { return bytes / int64(k.n) }
	fmt.Printf("%d %s requests that wait, in bytes for each:\n", k.n, k.protocol)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tblocking handler\tlock_gateway\tdifference\t")
	row := func(name string, of func(crowdMemory) int64) int64 {
		b, l := of(blocking), of(locking)
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t\n", name, b, l, l-b)
		return l - b
	}
	grown := row("heap", func(m crowdMemory) int64 { return each(m.with.minus(m.before).heap) })
	row("stacks", func(m crowdMemory) int64 { return each(m.with.minus(m.before).stacks) })
	row("heap left when all are gone", func(m crowdMemory) int64 { return each(m.after.minus(m.before).heap) })
	row("more of it after a second crowd", func(m crowdMemory) int64 { return each(m.again.minus(m.after).heap) })
	row("stacks left when all are gone", func(m crowdMemory) int64 { return each(m.after.minus(m.before).stacks) })
	if err := table.Flush(); err != nil {
		return err
	}
	left := each(locking.again.minus(locking.after).heap)
	routines := locking.again.minus(locking.before).goroutines
	fmt.Printf("goroutines: %d before, %d with the waiters, %d after both crowds\n\n",
		locking.before.goroutines, locking.with.goroutines, locking.again.goroutines)
	fmt.Printf("heap for each waiter beyond blocking <= %d: %d, %s\n", heapPerWaiter, grown, verdict(grown <= heapPerWaiter))
	fmt.Printf("every waiter granted, in the order of arrival: met\n") // or else there was an error
	fmt.Printf("heap lost for each of a second crowd <= %d: %d, %s\n", heapLeft, left, verdict(left <= heapLeft))
	fmt.Printf("goroutines left <= %d: %d, %s\n", routinesLeft, routines, verdict(routines <= routinesLeft))
	return nil
}
