package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

const (
	// atOnce is how many locks are taken at a time.
	atOnce = 64

	// restTime is how long servers are watched while nothing is asked of them.
	restTime = 10 * time.Second
)

// serverState is what the servers have used, and have, at one moment.
type serverState struct {
	at        time.Time
	cpu, own  time.Duration // of the servers, and of this process
	resident  int64         // bytes
	consumers int
	swaps     int64 // of both gateways
	reads     int64
}

// measureFollowers lets one gateway wait for many locks that another one holds, and
// looks what that costs the servers while nothing happens, and until each of the
// locks is handed over.
func measureFollowers(ctx context.Context, servers *natsServers, locks int) error {
	g, err := newGround(ctx, servers)
	if err != nil {
		return err
	}
	defer g.close()
	held, waiting := make([]gatewayLock, locks), make([]gatewayLock, locks)
	for i := range held {
		key := newMutexKey()
		held[i], waiting[i] = gatewayLock{g.gateways[0], key}, gatewayLock{g.gateways[1], key}
	}
	fmt.Printf("%d mutexes held through one gateway and waited for through another, on %s:\n", locks, count(len(servers.members), "NATS server"))
	r := followersReport{table: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)}
	fmt.Fprintln(r.table, "\tseconds\tservers' CPU, s\tgateways' CPU, s\tservers' RSS, MiB\tconsumers\tswaps\treads\t")
	state := func(err error) (serverState, error) {
		if err != nil {
			return serverState{}, err
		}
		return stateOf(ctx, servers, g.gateways[:2])
	}
	rest := func() error {
		sleep(ctx, restTime)
		return ctx.Err()
	}
	var answered func() error
	for _, phase := range []struct {
		name string
		do   func() error
	}{
		{"nothing held", rest},
		{"taking all", func() error { return each(ctx, held, atOnce, gatewayLock.lock) }},
		{"all held", rest},
		{"queueing", func() (err error) {
			answered, err = queue(ctx, waiting)
			return err
		}},
		{"all waited for", rest},
		{"releasing all", func() error { return each(ctx, held, atOnce, gatewayLock.unlock) }},
		{"until all are answered", func() error { return answered() }},
		{"all held again", rest},
	} {
		before, err := state(nil)
		if err != nil {
			return err
		}
		after, err := state(phase.do())
		if err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		r.add(phase.name, before, after)
	}
	return r.table.Flush()
}

// each does something with all locks, so many at a time.
func each(ctx context.Context, locks []gatewayLock, most int, do func(gatewayLock, context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(most)
	for _, l := range locks {
		group.Go(func() error { return do(l, ctx) })
	}
	return group.Wait()
}

// queue lets somebody wait for each of the locks, and returns when all do. If they all
// came at the same moment the servers would be measured by how they fail. Answered
// waits until each has its lock; what takes longer than patience hangs.
func queue(ctx context.Context, locks []gatewayLock) (answered func() error, err error) {
	group, waiting := errgroup.WithContext(ctx)
	err = each(waiting, locks, atOnce, func(l gatewayLock, ctx context.Context) error {
		group.Go(func() error { return l.lock(waiting) }) // ends with the answer, or the gateway
		h := handoff{queued: func(ctx context.Context) (int64, error) {
			v, err := l.backend.Value(ctx, l.key, true)
			return v.Waiting, err
		}}
		return h.untilQueued(ctx)
	})
	if err != nil {
		return nil, errors.Join(err, context.Cause(waiting))
	}
	return func() error {
		ended := make(chan error, 1)
		go func() { ended <- group.Wait() }() // ends with the gateways at the latest
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return fmt.Errorf("%v after the last release somebody still waits", patience)
		}
	}, nil
}

func stateOf(ctx context.Context, servers *natsServers, gateways []*gateway) (s serverState, err error) {
	js, err := jetstream.New(servers.conns[0])
	if err != nil {
		return s, err
	}
	stream, err := js.Stream(ctx, natsStream)
	if err != nil {
		return s, fmt.Errorf("counting consumers: %w", err)
	}
	s = serverState{at: time.Now(), cpu: servers.cpuTime(), own: ownCPUTime(), consumers: stream.CachedInfo().State.Consumers}
	for _, m := range servers.members {
		resident, err := m.resident()
		if err != nil {
			return s, err
		}
		s.resident += resident
	}
	for _, g := range gateways {
		s.swaps += g.store.swaps.Load()
		s.reads += g.store.reads.Load()
	}
	return s, nil
}

// resident is how much of the server is in memory, in bytes.
func (s *server) resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

type followersReport struct{ table *tabwriter.Writer }

// add writes what a phase cost, and what there is at its end.
func (r followersReport) add(name string, before, after serverState) {
	fmt.Fprintf(r.table, "%s\t%.1f\t%.2f\t%.2f\t%d\t%d\t%d\t%d\t\n", name, after.at.Sub(before.at).Seconds(),
		(after.cpu - before.cpu).Seconds(), (after.own - before.own).Seconds(), after.resident>>20, after.consumers, after.swaps-before.swaps, after.reads-before.reads)
}
