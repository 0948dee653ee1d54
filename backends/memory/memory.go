// Package memory keeps locks in the memory of one process. It is the fastest
// backend and the default one. A restart of the process forgets every lock.
package memory

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockgateway/lockgateway/internal/telemetry"
	"github.com/lockgateway/lockgateway/lock"
)

// DefaultForgetAfter is how long an idle lock is remembered if
// Options.ForgetAfter is not set.
const DefaultForgetAfter = time.Hour

// Options are the settings of a Backend. The zero value is good.
type Options struct {
	// ForgetAfter is how long a lock that nobody holds or waits for is
	// remembered. Once it is forgotten its value reads as never acquired; no
	// other difference can be seen. Zero means DefaultForgetAfter.
	ForgetAfter time.Duration

	// MaxLocks is the greatest number of locks remembered at once, idle ones
	// included; zero is no limit. At the limit the acquire of a further lock
	// makes an idle one be forgotten early, and gets a lock.LimitError if none
	// is idle.
	MaxLocks int64
}

const shardCount = 256 // a power of two

// Backend keeps locks in memory. Make one with New.
type Backend struct {
	seed   maphash.Seed
	start  time.Time // what instants are counted from, by the monotonic clock
	shards [shardCount]shard

	forgetAfter atomic.Int64 // a time.Duration
	maxLocks    atomic.Int64
	locks       atomic.Int64 // remembered in all shards; a place is taken before a lock is made
	inRings     atomic.Int64 // of these, those that may be idle
	coarse      coarse
}

var _ lock.Backend = (*Backend)(nil)

// instant is a time on the monotonic clock, counted from Backend.start.
type instant = time.Duration

// New returns an empty backend. Close it when done.
func New(opts Options) *Backend {
	b := &Backend{seed: maphash.MakeSeed(), start: time.Now()}
	b.coarse.init(b.now)
	// Tokens must go on growing after a restart, and nothing but the clock
	// outlives it. Microseconds are far below 2^53, and ahead of any process
	// that granted less than a million named slots a second in each shard.
	first := uint64(b.start.UnixMicro())
	for i := range b.shards {
		b.shards[i].init(b, first)
	}
	b.Configure(opts)
	return b
}

// Configure replaces the settings. Locks are kept, also when there are more
// than the new MaxLocks.
func (b *Backend) Configure(opts Options) {
	if opts.ForgetAfter <= 0 {
		opts.ForgetAfter = DefaultForgetAfter
	}
	b.maxLocks.Store(opts.MaxLocks)
	b.forgetAfter.Store(int64(opts.ForgetAfter))
	for i := range b.shards {
		b.shards[i].rescheduleSweep()
	}
}

func (b *Backend) now() instant { return time.Since(b.start) }

// shardOf returns the shard of a key, and the hash to find its lock there.
func (b *Backend) shardOf(key lock.Key) (*shard, uint64) {
	hash := maphash.String(b.seed, key.Name())
	return &b.shards[hash%shardCount], hash
}

// Acquire implements lock.Backend.
func (b *Backend) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	sh, hash := b.shardOf(req.Key)
	sh.mu.Lock()
	if sh.closed {
		sh.mu.Unlock()
		return lock.AcquireResult{}, lock.ErrClosing
	}
	s := sh.locks.find(hash, req.Key.Name())
	if s == nil {
		var err error
		if s, err = b.create(sh, hash, req.Key); err != nil {
			sh.mu.Unlock()
			return lock.AcquireResult{}, err
		}
	}
	if req.Holder != "" {
		if res, ok := sh.repeat(s, req.Holder, req.TTL); ok {
			sh.mu.Unlock()
			return res, nil
		}
	}
	if s.held() < s.max && s.waiting() == 0 {
		if req.Holder == "" {
			value, mark := sh.grantAnonymous(s)
			sh.mu.Unlock()
			return lock.AcquireResult{Acquired: true, Value: value, Mark: mark}, nil
		}
		res := sh.grant(s, req.Holder, req.TTL, 1)
		sh.mu.Unlock()
		return res, nil
	}
	if req.Wait <= 0 {
		sh.mu.Unlock()
		return lock.AcquireResult{}, nil
	}
	w, err := sh.enqueue(s, req)
	position := s.waiting()
	sh.mu.Unlock()
	if err != nil {
		return lock.AcquireResult{}, err
	}
	if telemetry.Recording(ctx) {
		return b.awaitTraced(ctx, sh, s, w, req, position)
	}
	o, err := b.await(ctx, sh, s, w, req)
	return o.result, err
}

// awaitTraced is await with a span, linked to the one of the release that ended the
// wait.
func (b *Backend) awaitTraced(ctx context.Context, sh *shard, s *semaphore, w *waiter, req lock.AcquireRequest, position int64) (lock.AcquireResult, error) {
	_, span := telemetry.Start(ctx, "lock.wait", attribute.Int64("lock.queue.position", position))
	defer span.End()
	o, err := b.await(ctx, sh, s, w, req)
	if o.by != nil {
		telemetry.Link(span, *o.by)
	}
	return o.result, err
}

// await waits until w is settled, times out or ctx ends. Of an end and a grant
// at the same moment, the one that held the shard's mutex first has happened.
func (b *Backend) await(ctx context.Context, sh *shard, s *semaphore, w *waiter, req lock.AcquireRequest) (outcome, error) {
	var timeout <-chan time.Time
	if req.Wait != lock.Forever {
		timer := time.NewTimer(req.Wait)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case o := <-w.done:
		return o, o.err
	case <-timeout:
	case <-ctx.Done():
	}

	sh.mu.Lock()
	left := s.leave(w)
	sh.mu.Unlock()
	if left {
		return outcome{}, ctx.Err()
	}
	o := <-w.done
	if ctx.Err() != nil {
		if o.result.Acquired {
			_ = b.GiveBack(ctx, req, o.result) // fails only when closed: nothing is held then
		}
		return outcome{}, ctx.Err()
	}
	return o, o.err
}

// GiveBack implements lock.Backend.
func (b *Backend) GiveBack(_ context.Context, req lock.AcquireRequest, res lock.AcquireResult) error {
	sh, hash := b.shardOf(req.Key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return lock.ErrClosing
	}
	s := sh.locks.find(hash, req.Key.Name())
	if s == nil {
		return nil
	}
	if req.Holder == "" {
		// The era ended if the count fell to 0 since the grant: whoever made
		// it fall has taken this slot along.
		if s.anonymous > 0 && s.era == res.Mark {
			sh.releaseAnonymous(s)
		}
		return nil
	}
	if h := s.holder(req.Holder); h != nil && h.token == res.Token {
		if h.answers--; h.answers == 0 {
			sh.releaseNamed(s, h)
		}
	}
	return nil
}

// Release implements lock.Backend.
func (b *Backend) Release(ctx context.Context, key lock.Key, holder string) (bool, error) {
	sh, hash := b.shardOf(key)
	sh.mu.Lock()
	if sh.closed {
		sh.mu.Unlock()
		return false, lock.ErrClosing
	}
	released := false
	if s := sh.locks.find(hash, key.Name()); s != nil {
		if s.waiting() > 0 && telemetry.Recording(ctx) {
			sh.releasing = new(trace.SpanContextFromContext(ctx))
		}
		if holder != "" {
			s.withdraw(holder)
			if h := s.holder(holder); h != nil {
				sh.releaseNamed(s, h)
				released = true
			}
		} else if s.anonymous > 0 {
			sh.releaseAnonymous(s)
			released = true
		}
	}
	sh.releasing = nil
	sh.mu.Unlock()
	return released, nil
}

// Value implements lock.Backend.
func (b *Backend) Value(_ context.Context, key lock.Key, detail bool) (lock.Value, error) {
	v, err := b.value(key, detail)
	// Sorted here, since a lock may have any number of holders, and its shard has
	// other locks.
	slices.SortFunc(v.Holders, func(x, y lock.Holder) int { return cmp.Compare(x.Token, y.Token) })
	return v, err
}

func (b *Backend) value(key lock.Key, detail bool) (lock.Value, error) {
	sh, hash := b.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return lock.Value{}, lock.ErrClosing
	}
	s := sh.locks.find(hash, key.Name())
	if s == nil {
		return lock.Value{Fresh: true}, nil
	}
	v := lock.Value{Held: s.held()}
	if detail {
		v.Waiting = s.waiting()
		v.Holders = s.describeHolders(b.now())
	}
	return v, nil
}

// Reset implements lock.Backend.
func (b *Backend) Reset(_ context.Context, key lock.Key) error {
	sh, hash := b.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return lock.ErrClosing
	}
	if s := sh.locks.find(hash, key.Name()); s != nil {
		s.endQueue(outcome{})
		s.dropHolders()
		sh.forget(s)
	}
	return nil
}

// Ready implements lock.Backend: memory always is, until it drains.
func (b *Backend) Ready() error {
	sh := &b.shards[shardCount-1] // the last one to be told to drain
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.draining {
		return lock.ErrClosing
	}
	return nil
}

// Drain implements lock.Backend.
func (b *Backend) Drain() {
	for i := range b.shards {
		b.shards[i].drain(false)
	}
}

// Close implements lock.Backend. It never fails.
func (b *Backend) Close() error {
	for i := range b.shards {
		b.shards[i].drain(true)
	}
	b.coarse.stop()
	return nil
}

// takePlace counts one more lock, unless there are MaxLocks already.
func (b *Backend) takePlace() bool {
	for {
		n, limit := b.locks.Load(), b.maxLocks.Load()
		if limit > 0 && n >= limit {
			return false
		}
		if b.locks.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// create makes the lock of a key that sh does not know. Where that needs room
// it lets go of sh.mu for a moment; it holds it again on return, and the lock
// may be another caller's by then.
func (b *Backend) create(sh *shard, hash uint64, key lock.Key) (*semaphore, error) {
	for {
		if b.takePlace() {
			s := &semaphore{name: strings.Clone(key.Name()), max: key.Max()}
			sh.locks.add(hash, s)
			return s, nil
		}

		// No two shards are locked at once.
		sh.mu.Unlock()
		made := b.forgetOneIdle(sh)
		sh.mu.Lock()
		switch s := sh.locks.find(hash, key.Name()); {
		case sh.closed:
			return nil, lock.ErrClosing
		case s != nil:
			return s, nil
		case !made:
			return nil, &lock.LimitError{Limit: "max_locks", Max: b.maxLocks.Load()}
		}
	}
}

// forgetOneIdle makes room for a lock, first in the shard that needs it. It
// reports whether some lock was idle.
func (b *Backend) forgetOneIdle(first *shard) bool {
	if b.inRings.Load() == 0 { // or else every refusal would lock all shards
		return false
	}
	if first.forgetOldestIdle() {
		return true
	}
	for i := range b.shards {
		if b.shards[i].forgetOldestIdle() {
			return true
		}
	}
	return false
}
