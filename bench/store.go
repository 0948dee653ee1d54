package main

import (
	"context"
	"errors"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// store is a kind of store under test: servers that run, and as many clients of
// them as there are gateways, for what these are compared with.
type store interface {
	// goals are those of the gateways on this store.
	goals() storeGoals

	// open returns what the i-th gateway keeps its locks in.
	open(i int, forgetAfter time.Duration) (replicated.Store, error)

	// requestTimeout is the default of gateways on this store.
	requestTimeout() time.Duration

	// newWriter returns who makes raw writes through the i-th client.
	newWriter(i int) rawWriter

	// newRelay returns one from the first client to the second.
	newRelay(ctx context.Context) (*rawRelay, error)

	// ownLocks returns what the store has for locks itself, if it has any, each
	// with lockers that spread over n clients.
	ownLocks(ctx context.Context, lockers, n int) ([]ownLocks, error)

	// tidy removes what writes have left, so that the data do not grow from
	// cycle to cycle.
	tidy(ctx context.Context) error

	// kept returns what gateways keep.
	kept(ctx context.Context) (kept, error)

	// cpuTime is that of all servers.
	cpuTime() time.Duration

	// stop ends clients and servers.
	stop() error
}

// storeGoals are the goals that differ from store to store.
type storeGoals struct {
	uncontended, uncontendedP50 goal // against raw writes
	mutex                       goal // one gateway, against sequential writes
	semaphore, semaphoreAcross  goal // one gateway and several, against concurrent writes
}

// ownLocks are lockers of one lock of the store's own.
type ownLocks struct {
	name    string
	lockers []locker
	queued  func(context.Context) (int64, error) // how many wait; nil: that cannot be seen
}

// rawWriter makes the least write that could keep a lock, on condition that the
// key has not changed, and on a key of its own: what anything that is kept in
// the store has to pay. Its calls do not overlap.
type rawWriter func(context.Context) error

// rawRelay is the least that a handoff from one gateway to another could take:
// one writes, the other hears of it and writes, too.
type rawRelay struct {
	from, to rawWriter
	hear     func(context.Context) error // waits for the next write of from
}

func (r *rawRelay) pass(ctx context.Context, _ int) (time.Duration, error) {
	answered := begin(ctx, func(ctx context.Context) error {
		if err := r.hear(ctx); err != nil {
			return err
		}
		return r.to(ctx)
	})
	sent := time.Now()
	if err := r.from(ctx); err != nil {
		return 0, err
	}
	at, err := answered()
	return at.Sub(sent), err
}

var errOtherWriter = errors.New("somebody else writes this key")
