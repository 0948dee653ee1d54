package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// Races are repeated so many times, or for so long: backends differ a
// thousandfold in how fast they answer.
const (
	races    = 10_000
	raceTime = 3 * time.Second
)

func repeat(round func(n int)) {
	begun := time.Now()
	for n := range races {
		if n >= 50 && time.Since(begun) > raceTime {
			return
		}
		round(n)
	}
}

var racePromises = []promise{
	{"B3CancelAtTheGrant", "a client that goes at the very moment of its grant: either it was answered, or the slot went on; exactly one of the two", func(s *subject) {
		s.raceAgainstGrant(true, context.Canceled)
	}},
	{"TimeOutAtTheGrant", "a wait that runs out at the very moment of its grant: either acquired, or the slot went on; exactly one of the two", func(s *subject) {
		s.raceAgainstGrant(false, nil)
	}},
	{"MutualExclusion", "at no time are there more than maxValue holders, and every slot comes back", func(s *subject) {
		for _, maxValue := range []int64{1, 3} {
			s.crowd(s.key(fmt.Sprint(maxValue)), maxValue)
		}
	}},
	{"Conservation", "grants less successful releases are the count, whatever happens at the same time", func(s *subject) {
		k := s.key("5")
		s.take(anonymous(k), 1)
		balance := atomic.Int64{}
		balance.Store(1)
		s.concurrently(8, func(s *subject, client int) {
			repeatBriefly(func() {
				if client%2 == 0 {
					if res := s.acquire(anonymous(k)); res.Acquired {
						balance.Add(1)
					}
				} else if ok, err := s.Release(s.ctx, k, ""); err != nil {
					s.broken("release failed: %v", err)
				} else if ok {
					balance.Add(-1)
				}
			})
		})
		s.held(k, balance.Load())
	}},
	{"ResetAmongWaiters", "a reset among releases, grants and waits leaves no waiter behind and no slot held", func(s *subject) {
		k := s.key("2")
		s.concurrently(6, func(s *subject, client int) {
			repeatBriefly(func() {
				r := anonymous(k)
				if client%2 == 0 {
					r.Holder = fmt.Sprint(client)
				}
				r.Wait = 5 * time.Millisecond
				if res := s.acquire(r); res.Acquired {
					if _, err := s.Release(s.ctx, k, r.Holder); err != nil {
						s.broken("release failed: %v", err)
					}
				}
				if client == 0 {
					s.reset(k)
				}
			})
		})
		s.queued(k, 0)
		s.reset(k)
		s.take(anonymous(k), 1)
		s.take(anonymous(k), 2)
		s.refused(anonymous(k))
	}},
}

// raceAgainstGrant lets waits end while the slot is being released to them, by
// cancelling them or else by their time-out, and checks that the slot is never
// lost and never doubled. gone is the error of a wait that ended so.
func (s *subject) raceAgainstGrant(cancel bool, gone error) {
	granted, skipped := 0, 0
	repeat(func(n int) {
		k := s.key("1")
		r, holder := anonymous(k), ""
		if n%3 == 0 {
			holder = "b"
			r = named(k, holder)
		}
		begun := time.Now()
		s.take(anonymous(k), 1)
		roundTrip := time.Since(begun)
		if !cancel {
			r.Wait = 1 + rand.N(4*roundTrip+20*time.Microsecond) //nolint:gosec // Not a secret.
		}
		b := s.begin(r)
		var c *waiter
		if cancel {
			s.queued(k, 1)
			if n%2 == 0 {
				c = s.queue(anonymous(k), 2)
			}
		}
		pause := rand.N(20 * time.Microsecond) //nolint:gosec // Not a secret.
		s.concurrently(2, func(s *subject, n int) {
			if n == 0 {
				s.release(k, "", true)
			} else if cancel {
				spin(pause)
				b.cancel()
			}
		})
		res, err := b.end()
		switch {
		case err == nil && res.Acquired:
			granted++
			s.detailHeld(k, 1)
			if c != nil {
				c.waiting()
			}
			s.release(k, holder, true)
		case !errors.Is(err, gone):
			s.broken("the wait ended with %+v, error %v", res, err)
		default:
			skipped++
		}
		if c != nil {
			c.granted(1)
			s.release(k, "", true)
		}
		s.queued(k, 0)
		s.detailHeld(k, 0)
	})
	s.Logf("%d granted, %d gone", granted, skipped)
}

// spin passes a time too short to sleep.
func spin(d time.Duration) {
	for begun := time.Now(); time.Since(begun) < d; {
	}
}

func (s *subject) detailHeld(k lock.Key, want int64) {
	s.Helper()
	if v := s.detail(k); v.Held != want {
		s.broken("value gave %+v; want %d held", v, want)
	}
}

// crowd lets many clients take and release slots, some named, some giving up,
// and counts them inside.
func (s *subject) crowd(k lock.Key, maxValue int64) {
	s.Helper()
	var inside, entered atomic.Int64
	s.concurrently(8, func(s *subject, client int) {
		random := rand.New(rand.NewPCG(uint64(client), 1)) //nolint:gosec // Not a secret.
		repeatBriefly(func() {
			r := anonymous(k)
			if client%2 == 0 {
				r.Holder = fmt.Sprint(client)
			}
			r.Wait = lock.Forever
			ctx, cancel := context.WithCancel(s.ctx)
			if random.IntN(3) == 0 {
				ctx, cancel = context.WithTimeout(s.ctx, upTo(random, 2*time.Millisecond))
			}
			defer cancel()
			res, err := s.Acquire(ctx, r)
			switch {
			case err != nil && ctx.Err() == nil:
				s.broken("acquire failed: %v", err)
			case err == nil && !res.Acquired:
				s.broken("an acquire that waits for ever gave %+v", res)
			case err == nil:
				entered.Add(1)
				if n := inside.Add(1); n > maxValue || res.Value > maxValue {
					s.broken("%d holders inside, value %d, of a lock of %d", n, res.Value, maxValue)
				}
				for range random.IntN(4) { // lets the others in, if they can
					runtime.Gosched()
				}
				inside.Add(-1)
				s.release(k, r.Holder, true)
			}
		})
	})
	s.queued(k, 0)
	s.held(k, 0)
	s.Logf("maximum %d: %d entered", maxValue, entered.Load())
}

func repeatBriefly(round func()) {
	begun := time.Now()
	for n := range 1000 {
		if n >= 20 && time.Since(begun) > raceTime/3 {
			return
		}
		round()
	}
}

// upTo returns a random duration below most.
func upTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

// concurrently runs clients, each with a subject of its own to fail by, and
// waits for all of them. The first failure is then that of the test, and ends
// what the others wait for, as does the end of the patience.
func (s *subject) concurrently(clients int, client func(s *subject, n int)) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	var (
		wg     sync.WaitGroup
		failed = failedClients{cancel: cancel}
	)
	for n := range clients {
		own := *s
		own.ctx = ctx
		own.reporter = &clientReporter{reporter: s.reporter, failed: &failed}
		wg.Go(func() { client(&own, n) })
	}
	wg.Wait()
	if failed.first != "" {
		s.Fatalf("%s", failed.first)
	}
	if ctx.Err() != nil {
		s.broken("concurrent clients were not done after %v", s.patience)
	}
}

type failedClients struct {
	cancel context.CancelFunc
	mu     sync.Mutex
	first  string
}

// clientReporter keeps a failure for the test's goroutine, which alone may end
// the test, and ends the client.
type clientReporter struct {
	reporter
	failed *failedClients
}

func (r *clientReporter) Fatalf(format string, args ...any) {
	r.failed.mu.Lock()
	if r.failed.first == "" {
		r.failed.first = fmt.Sprintf(format, args...)
	}
	r.failed.mu.Unlock()
	r.failed.cancel()
	runtime.Goexit()
}
