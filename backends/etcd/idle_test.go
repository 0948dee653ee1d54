package etcd

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// counting grants leases with rising numbers, after a while.
type counting struct {
	leases int64
	ttl    time.Duration // of the latest
	err    error
}

func (c *counting) grant(_ context.Context, ttl time.Duration) (int64, time.Duration, error) {
	time.Sleep(time.Millisecond)
	if c.err != nil {
		return 0, 0, c.err
	}
	c.leases++
	c.ttl = ttl
	return c.leases, ttl, nil
}

func (c *counting) forgetAfter() time.Duration { return time.Hour }

func newIdleLeases() *idleLeases { return &idleLeases{turn: make(chan struct{}, 1)} }

func (l *idleLeases) mustTake(t *testing.T, g granter, gone int64) int64 {
	t.Helper()
	lease, err := l.take(t.Context(), g, gone)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestIdleRecordsOfAMinuteShareALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newIdleLeases(), new(counting)
		for i, c := range []struct {
			after time.Duration
			want  int64
		}{{0, 1}, {30 * time.Second, 1}, {29 * time.Second, 1}, {time.Second, 2}, {time.Hour, 3}, {time.Second, 3}} {
			time.Sleep(c.after)
			if got := l.mustTake(t, g, 0); got != c.want {
				t.Errorf("the record %d has the lease %d; want %d", i, got, c.want)
			}
		}
		if g.ttl != time.Hour+time.Minute {
			t.Errorf("the lease is of %v", g.ttl)
		}
	})
}

func TestIdleLeaseTakesAThousandKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newIdleLeases(), new(counting)
		var mu sync.Mutex
		keys := make(map[int64]int)
		var all sync.WaitGroup
		for range 2500 {
			all.Go(func() {
				lease := l.mustTake(t, g, 0)
				mu.Lock()
				defer mu.Unlock()
				keys[lease]++
			})
		}
		all.Wait()
		if len(keys) != 3 || keys[1] != 1000 || keys[2] != 1000 || keys[3] != 500 {
			t.Errorf("the leases have so many keys: %v", keys)
		}
	})
}

func TestIdleLeaseThatIsGoneIsReplacedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newIdleLeases(), new(counting)
		first := l.mustTake(t, g, 0)
		second := l.mustTake(t, g, first)
		if again := l.mustTake(t, g, first); second == first || again != second {
			t.Errorf("after the lease %d there were %d and %d", first, second, again)
		}
	})
}

func TestIdleLeaseThatIsNotGrantedIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newIdleLeases(), &counting{err: errors.New("no space")}
		if _, err := l.take(t.Context(), g, 0); !errors.Is(err, g.err) {
			t.Errorf("the error is %v", err)
		}
		g.err = nil
		l.mustTake(t, g, 0)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		l.turn <- struct{}{} // somebody is granted one, and it takes long
		if _, err := l.take(done, g, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	})
}
