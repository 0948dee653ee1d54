package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// memoryOnly is a measurement that stores do not make unless asked.
const memoryOnly = "memory"

const (
	onceClients = 64

	// mostCached is how many locks are looked at for what a gateway keeps of a
	// lock: so few that it keeps something of all.
	mostCached = 8_000

	// storeLeft is what counts as nothing, for each lock: pages of a store that are
	// less full than before.
	storeLeft = 1 // byte

	// cacheLeft is what counts as nothing, for the gateway: its cache is bounded,
	// and Go's maps keep the room that they once had.
	cacheLeft = 1 << 20 // bytes

	// recollection is how long it takes, from when the store should have forgotten
	// the last lock, until it has, and the gateway has forgotten it, too; and
	// forgetting is what it takes for each lock.
	recollection = 5 * time.Minute
	forgetting   = time.Millisecond
)

// forgetAfter is less than settings may say, and more than it takes to use so
// many locks once.
func forgetAfter(locks int64) time.Duration {
	return max(time.Minute, time.Duration(locks)*2*time.Millisecond)
}

// onceMemory is what is in use at one moment.
type onceMemory struct {
	memory
	kept
}

// kept is what a store has of locks and all that belongs to them.
type kept struct {
	records int64
	size    int64 // of the first server's data, in bytes
}

// measureOnce uses many locks once, and looks whether anything is left of
// them when they were forgotten.
func measureOnce(ctx context.Context, servers store, locks int64) error {
	g, err := openGateway(ctx, servers, 0, forgetAfter(locks))
	if err != nil {
		return err
	}
	defer func() { _ = g.Close() }()
	measure := func() (m onceMemory, err error) {
		if err = servers.tidy(ctx); err != nil {
			return m, err
		}
		m.kept, err = servers.kept(ctx)
		m.memory = ownMemory()
		return m, err
	}
	if err := useOnce(ctx, g, onceClients); err != nil { // to warm up
		return err
	}
	before, err := measure()
	if err != nil {
		return err
	}
	few := min(mostCached, locks)
	if err := useOnce(ctx, g, few); err != nil {
		return err
	}
	cached, err := measure()
	if err != nil {
		return err
	}
	if err := useOnce(ctx, g, locks-few); err != nil {
		return err
	}
	used, err := measure()
	if err != nil {
		return err
	}
	if used.records-before.records < locks {
		return fmt.Errorf("the store forgot locks before all were used: it has %d records", used.records)
	}
	begin, after := time.Now(), used
	for !after.isAt(before, locks) && time.Since(begin) < forgetAfter(locks)+recollection+time.Duration(locks)*forgetting && ctx.Err() == nil {
		sleep(ctx, 10*time.Second)
		if after, err = measure(); err != nil {
			return err
		}
	}
	r := onceReport{locks, few, before, cached, used, after}
	return r.print(time.Since(begin))
}

// useOnce acquires and releases n locks that were never used.
func useOnce(ctx context.Context, g *gateway, n int64) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range onceClients {
		group.Go(func() error {
			for next.Add(1) <= n {
				l := gatewayLock{g, newMutexKey()}
				if err := l.lock(ctx); err != nil {
					return err
				}
				if err := l.unlock(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// isAt reports whether nothing is left of the locks, compared with before.
func (m onceMemory) isAt(before onceMemory, locks int64) bool {
	return m.records <= before.records && m.size <= before.size+storeLeft*locks &&
		m.heap <= before.heap+cacheLeft+heapLeft*locks && m.goroutines <= before.goroutines+routinesLeft
}

// onceReport is what is in use before, after a few locks, after all, and when
// they are forgotten.
type onceReport struct {
	locks, few                  int64
	before, cached, used, after onceMemory
}

func (r onceReport) print(took time.Duration) error {
	fmt.Printf("%d mutexes acquired and released once, through one gateway, and forgotten:\n", r.locks)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\tbefore\tafter %d\tafter all\tforgotten\t\n", r.few)
	row := func(name string, of func(onceMemory) int64) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t\n", name, of(r.before), of(r.cached), of(r.used), of(r.after))
	}
	row("records in the store", func(m onceMemory) int64 { return m.records })
	row("its data, bytes", func(m onceMemory) int64 { return m.size })
	row("the gateway's heap, bytes", func(m onceMemory) int64 { return m.heap })
	row("stacks, bytes", func(m onceMemory) int64 { return m.stacks })
	row("goroutines", func(m onceMemory) int64 { return m.goroutines })
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Printf("data, for each lock: %d bytes\n", (r.used.size-r.before.size)/r.locks)
	fmt.Printf("heap, for each lock that the gateway keeps: %d bytes\n", (r.cached.heap-r.before.heap)/r.few)
	fmt.Printf("back to the start %v later: %s\n", took.Round(time.Second), verdict(r.after.isAt(r.before, r.locks)))
	return nil
}
