package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// operation is the i-th thing that a client does. It tells how long that took,
// and may leave out what is not to be measured.
type operation func(ctx context.Context, i int) (time.Duration, error)

// timed leaves nothing out.
func timed(do func(context.Context) error) operation {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		begin := time.Now()
		err := do(ctx)
		return time.Since(begin), err
	}
}

// after waits before each operation.
func after(wait time.Duration, do operation) operation {
	return func(ctx context.Context, i int) (time.Duration, error) {
		sleep(ctx, wait)
		return do(ctx, i)
	}
}

// cell is what some clients do at the same time, each one operation after the
// other. Operations come in pairs, and a client ends after a whole one.
type cell struct {
	name     string
	clients  []operation
	gateways []*gateway // whose calls to the store count
}

// finished is an operation that ended.
type finished struct {
	at   time.Time
	took time.Duration
}

// result is what a round of a cell measured.
type result struct {
	rate                   float64 // operations per second
	p50                    float64 // latency in microseconds
	clientCPU, serverCPU   float64 // microseconds per operation
	swaps, refusals, reads float64 // of the gateways, per operation
}

const (
	// runUp comes before the part of a round that counts: until clients that
	// begin all at once have spread.
	runUp = 150 * time.Millisecond

	// patience is how long after a round its last operation may end. What takes
	// longer hangs.
	patience = 30 * time.Second
)

// round lets all clients work. What counts is what happens between the run-up
// and the end of the duration: the clients still work then, and those that wait
// for a lock are not less than before.
func (c *cell) round(ctx context.Context, servers store, duration time.Duration) (result, error) {
	runtime.GC() // the cell before leaves nothing to clean up
	ctx, cancel := context.WithTimeout(ctx, runUp+duration+patience)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var (
		stop atomic.Bool
		done atomic.Int64
	)
	all := make([][]finished, len(c.clients))
	for i, do := range c.clients {
		group.Go(func() (err error) {
			all[i], err = work(ctx, do, &stop, &done)
			return err
		})
	}
	sleep(ctx, runUp)
	before, doneBefore := c.spent(servers), done.Load()
	sleep(ctx, duration)
	for done.Load() == doneBefore && ctx.Err() == nil { // a slow one counts as well
		sleep(ctx, duration)
	}
	after := c.spent(servers)
	stop.Store(true)
	if err := group.Wait(); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%v after the end of the round a client is not done: %w", patience, err)
		}
		return result{}, fmt.Errorf("%s: %w", c.name, err)
	}
	var latencies []time.Duration
	for _, list := range all {
		for _, f := range list {
			if f.at.After(before.at) && !f.at.After(after.at) {
				latencies = append(latencies, f.took)
			}
		}
	}
	if len(latencies) == 0 {
		return result{}, fmt.Errorf("%s: nothing was finished", c.name)
	}
	slices.Sort(latencies)
	n := float64(len(latencies))
	return result{
		rate:      n / after.at.Sub(before.at).Seconds(),
		p50:       micros(latencies[len(latencies)/2]),
		clientCPU: micros(after.clientCPU-before.clientCPU) / n,
		serverCPU: micros(after.serverCPU-before.serverCPU) / n,
		swaps:     float64(after.swaps-before.swaps) / n,
		refusals:  float64(after.refusals-before.refusals) / n,
		reads:     float64(after.reads-before.reads) / n,
	}, nil
}

// work is one client's part of a round.
func work(ctx context.Context, do operation, stop *atomic.Bool, done *atomic.Int64) (list []finished, err error) {
	for i := 0; i%2 == 1 || !stop.Load(); i++ {
		took, err := do(ctx, i)
		if err != nil {
			return list, err
		}
		list = append(list, finished{time.Now(), took})
		done.Add(1)
	}
	return list, nil
}

// spent is what was used up to a moment.
type spent struct {
	at                     time.Time
	clientCPU, serverCPU   time.Duration
	swaps, refusals, reads int64
}

func (c *cell) spent(servers store) spent {
	s := spent{at: time.Now(), clientCPU: ownCPUTime(), serverCPU: servers.cpuTime()}
	for _, g := range c.gateways {
		s.swaps += g.store.swaps.Load()
		s.refusals += g.store.refusals.Load()
		s.reads += g.store.reads.Load()
	}
	return s
}

// sleep returns early when ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
