package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// subject is a backend under test, with words to test it in.
type subject struct {
	reporter
	lock.Backend
	promise  promise
	ctx      context.Context
	patience time.Duration
}

// broken ends the test, saying what was seen and which promise that breaks.
func (s *subject) broken(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s\n\tbroken promise: %s", fmt.Sprintf(format, args...), s.promise.text)
}

// key returns a key that no test uses twice.
func (s *subject) key(maxValue string) lock.Key {
	s.Helper()
	return s.keyOf(maxValue, rand.Text())
}

func (s *subject) keyOf(maxValue, id string) lock.Key {
	s.Helper()
	k, err := lock.NewKey(maxValue, id)
	if err != nil {
		s.Fatalf("making a key: %v", err)
	}
	return k
}

// anonymous is a request for a slot without a name.
func anonymous(k lock.Key) lock.AcquireRequest { return lock.AcquireRequest{Key: k} }

// named is a request for a slot by holder.
func named(k lock.Key, holder string) lock.AcquireRequest {
	return lock.AcquireRequest{Key: k, Holder: holder}
}

// withTTL returns the request with a TTL.
func withTTL(r lock.AcquireRequest, ttl time.Duration) lock.AcquireRequest {
	r.TTL = ttl
	return r
}

// acquire carries out a request that must not fail.
func (s *subject) acquire(r lock.AcquireRequest) lock.AcquireResult {
	s.Helper()
	res, err := s.Acquire(s.ctx, r)
	if err != nil {
		s.broken("acquire failed: %v", err)
	}
	return res
}

// take acquires a slot that must be free and checks the value.
func (s *subject) take(r lock.AcquireRequest, value int64) lock.AcquireResult {
	s.Helper()
	res := s.acquire(r)
	if !res.Acquired || res.Value != value {
		s.broken("acquire gave acquired %t, value %d; want true, %d", res.Acquired, res.Value, value)
	}
	return res
}

// refused tries once for a slot that must not be had.
func (s *subject) refused(r lock.AcquireRequest) {
	s.Helper()
	if res := s.acquire(r); res != (lock.AcquireResult{}) {
		s.broken("acquire gave %+v; want not acquired", res)
	}
}

// release releases, and checks whether that freed a slot.
func (s *subject) release(k lock.Key, holder string, want bool) {
	s.Helper()
	got, err := s.Release(s.ctx, k, holder)
	if err != nil {
		s.broken("release failed: %v", err)
	}
	if got != want {
		s.broken("release (holder %q) gave %t; want %t", holder, got, want)
	}
}

func (s *subject) reset(k lock.Key) {
	s.Helper()
	if err := s.Reset(s.ctx, k); err != nil {
		s.broken("reset failed: %v", err)
	}
}

func (s *subject) giveBack(r lock.AcquireRequest, res lock.AcquireResult) {
	s.Helper()
	if err := s.GiveBack(s.ctx, r, res); err != nil {
		s.broken("give-back failed: %v", err)
	}
}

func (s *subject) detail(k lock.Key) lock.Value {
	s.Helper()
	v, err := s.Value(s.ctx, k, true)
	if err != nil {
		s.broken("value failed: %v", err)
	}
	return v
}

// held checks the number of holders of a lock that was acquired before.
func (s *subject) held(k lock.Key, want int64) {
	s.Helper()
	v, err := s.Value(s.ctx, k, false)
	if err != nil {
		s.broken("value failed: %v", err)
	}
	if v.Fresh || v.Held != want || v.Waiting != 0 || v.Holders != nil {
		s.broken("value gave %+v; want %d held", v, want)
	}
}

// fresh checks that the lock reads as never acquired.
func (s *subject) fresh(k lock.Key) {
	s.Helper()
	if v := s.detail(k); !v.Fresh || v.Held != 0 || v.Waiting != 0 || v.Holders != nil {
		s.broken("value gave %+v; want that of a lock never acquired", v)
	}
}

// eventually waits until ok holds; what says what is waited for. Backends
// announce the length of a queue to nobody, so this one thing is polled.
func (s *subject) eventually(what string, ok func() bool) {
	s.Helper()
	deadline := time.NewTimer(s.patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := 0; !ok(); n++ {
		if n < 100 { // fast backends are there in less than a tick
			runtime.Gosched()
			continue
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			s.broken("%s: not after %v", what, s.patience)
		}
	}
}

// queued waits until the queue has so many places.
func (s *subject) queued(k lock.Key, places int64) {
	s.Helper()
	s.eventually(fmt.Sprintf("a queue of %d", places), func() bool { return s.detail(k).Waiting == places })
}

// waiter is an acquire under way.
type waiter struct {
	s      *subject
	req    lock.AcquireRequest
	cancel context.CancelFunc
	done   chan struct{} // closed once res and err are set
	res    lock.AcquireResult
	err    error
}

// begin starts an acquire that waits for ever unless the request says less.
// The goroutine ends with the acquire, at the latest when the test does.
func (s *subject) begin(r lock.AcquireRequest) *waiter {
	if r.Wait == 0 {
		r.Wait = lock.Forever
	}
	ctx, cancel := context.WithCancel(s.ctx)
	w := &waiter{s: s, req: r, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer cancel()
		w.res, w.err = s.Acquire(ctx, r)
	}()
	return w
}

// queue starts an acquire and waits until the queue has so many places.
func (s *subject) queue(r lock.AcquireRequest, places int64) *waiter {
	s.Helper()
	w := s.begin(r)
	s.queued(r.Key, places)
	return w
}

// end waits until the acquire has ended.
func (w *waiter) end() (lock.AcquireResult, error) {
	w.s.Helper()
	timeout := time.NewTimer(w.s.patience)
	defer timeout.Stop()
	select {
	case <-w.done:
	case <-timeout.C:
		w.s.broken("a waiting acquire got no answer within %v", w.s.patience)
	}
	return w.res, w.err
}

// granted waits for the grant and checks the value.
func (w *waiter) granted(value int64) lock.AcquireResult {
	w.s.Helper()
	res, err := w.end()
	if err != nil || !res.Acquired || res.Value != value {
		w.s.broken("a waiting acquire gave acquired %t, value %d, error %v; want true, %d", res.Acquired, res.Value, err, value)
	}
	return res
}

// denied waits for the answer "not acquired".
func (w *waiter) denied() {
	w.s.Helper()
	if res, err := w.end(); err != nil || res != (lock.AcquireResult{}) {
		w.s.broken("a waiting acquire gave %+v, error %v; want not acquired", res, err)
	}
}

// failed waits for an error.
func (w *waiter) failed(want error) {
	w.s.Helper()
	if res, err := w.end(); !errors.Is(err, want) || res.Acquired {
		w.s.broken("a waiting acquire gave %+v, error %v; want the error %v", res, err, want)
	}
}

// waiting checks that the acquire has not ended yet.
func (w *waiter) waiting() {
	w.s.Helper()
	select {
	case <-w.done:
		w.s.broken("a waiting acquire ended with %+v, error %v; want it to go on waiting", w.res, w.err)
	default:
	}
}
