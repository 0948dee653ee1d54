package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// locker is one client's way to a lock: the gateway's, or one of the store's own.
type locker interface {
	// lock waits as long as it takes.
	lock(ctx context.Context) error
	unlock(ctx context.Context) error
}

// gatewayLock takes anonymous slots.
type gatewayLock struct {
	backend lock.Backend
	key     lock.Key
}

func (l gatewayLock) lock(ctx context.Context) error {
	res, err := l.backend.Acquire(ctx, lock.AcquireRequest{Key: l.key, Wait: lock.Forever})
	if err == nil && !res.Acquired {
		err = errors.New("an acquire that waits for ever took nothing")
	}
	return err
}

func (l gatewayLock) unlock(ctx context.Context) error {
	released, err := l.backend.Release(ctx, l.key, "")
	if err == nil && !released {
		err = errors.New("a release found nothing to release")
	}
	return err
}

// exclusion checks that a lock has no more holders than it may have.
type exclusion struct {
	most   int64
	inside atomic.Int64
}

func (e *exclusion) enter() error {
	if n := e.inside.Add(1); n > e.most {
		return fmt.Errorf("EXCLUSION IS BROKEN: a lock of %d has %d holders", e.most, n)
	}
	return nil
}

func (e *exclusion) leave() { e.inside.Add(-1) }

// pairsOf locks and unlocks in turn, and holds the lock in between.
func pairsOf(l locker, check *exclusion, hold time.Duration) operation {
	lock := timed(l.lock)
	unlock := timed(l.unlock)
	return func(ctx context.Context, i int) (time.Duration, error) {
		if i%2 == 0 {
			took, err := lock(ctx, i)
			if err == nil {
				err = check.enter()
			}
			return took, err
		}
		if hold > 0 {
			sleep(ctx, hold)
		}
		check.leave()
		return unlock(ctx, i)
	}
}

// newKey returns the key of a lock that was never used.
func newKey(maxValue string) lock.Key {
	key, err := lock.NewKey(maxValue, newUUID())
	if err != nil {
		panic(err) // it is right
	}
	return key
}

func newMutexKey() lock.Key { return newKey(mutexMax) }
