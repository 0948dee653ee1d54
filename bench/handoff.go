package main

import (
	"context"
	"time"
)

// begin runs something in a goroutine, which ends with it, and returns a
// function that waits for its end and says when it was.
func begin(ctx context.Context, do func(context.Context) error) (end func() (time.Time, error)) {
	type ending struct {
		at  time.Time
		err error
	}
	ended := make(chan ending, 1)
	go func() {
		err := do(ctx)
		ended <- ending{time.Now(), err}
	}()
	return func() (time.Time, error) {
		e := <-ended
		return e.at, e.err
	}
}

// How long a waiter has been waiting when the lock is released. For etcd's own
// locks it matters: their watches hear nothing in their first 100 ms, or most of
// it.
const (
	shortWait = 5 * time.Millisecond
	longWait  = 150 * time.Millisecond
)

// handoff is a lock that goes from one client to another, back and forth. Queued
// says how many wait.
type handoff struct {
	lockers [2]locker
	queued  func(context.Context) (int64, error)
	wait    time.Duration
}

// pass hands the lock over once, and measures from the moment when the release
// is sent until the waiter has its answer.
func (h handoff) pass(ctx context.Context, i int) (time.Duration, error) {
	holder, waiter := h.lockers[i%2], h.lockers[1-i%2]
	if err := holder.lock(ctx); err != nil {
		return 0, err
	}
	answered := begin(ctx, waiter.lock)
	if err := h.untilQueued(ctx); err != nil {
		return 0, err
	}
	sleep(ctx, h.wait)
	sent := time.Now()
	if err := holder.unlock(ctx); err != nil {
		return 0, err
	}
	at, err := answered()
	if err != nil {
		return 0, err
	}
	return at.Sub(sent), waiter.unlock(ctx)
}

// untilQueued returns when somebody waits.
func (h handoff) untilQueued(ctx context.Context) error {
	for {
		n, err := h.queued(ctx)
		if n > 0 || err != nil {
			return err
		}
		sleep(ctx, time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
