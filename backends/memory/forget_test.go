package memory_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockgateway/lockgateway/backends/memory"
	"github.com/lockgateway/lockgateway/lock"
)

// late is how much later than ForgetAfter a lock may be forgotten.
func late(forgetAfter time.Duration) time.Duration { return min(forgetAfter/16, time.Second) }

// subject is a backend with words to test it in.
type subject struct {
	*testing.T
	*memory.Backend
}

func open(t *testing.T, opts memory.Options) subject {
	t.Helper()
	return subject{t, openBackend(t, opts)}
}

// take acquires a slot that must be free.
func (s subject) take(r lock.AcquireRequest) {
	s.Helper()
	if res, err := s.Acquire(s.Context(), r); err != nil || !res.Acquired {
		s.Fatalf("acquire gave %+v, error %v; want acquired", res, err)
	}
}

// free releases a slot that must be held.
func (s subject) free(k lock.Key, holder string) {
	s.Helper()
	if released, err := s.Release(s.Context(), k, holder); err != nil || !released {
		s.Fatalf("release gave %t, error %v; want true", released, err)
	}
}

// use takes and frees a slot.
func (s subject) use(k lock.Key) {
	s.Helper()
	s.take(lock.AcquireRequest{Key: k})
	s.free(k, "")
}

// remembered reports whether the lock is not as good as never used.
func (s subject) remembered(k lock.Key) bool {
	s.Helper()
	v, err := s.Value(s.Context(), k, false)
	if err != nil {
		s.Fatal(err)
	}
	return !v.Fresh
}

// limited tries for a lock beyond MaxLocks.
func (s subject) limited(k lock.Key, maxLocks int64) {
	s.Helper()
	_, err := s.Acquire(s.Context(), lock.AcquireRequest{Key: k})
	var limit *lock.LimitError
	if !errors.As(err, &limit) || *limit != (lock.LimitError{Limit: "max_locks", Max: maxLocks}) {
		s.Fatalf("acquire gave the error %v; want that of max_locks %d", err, maxLocks)
	}
	if s.remembered(k) {
		s.Fatal("a refused lock is remembered")
	}
}

func (s subject) key(n int) lock.Key {
	s.Helper()
	return uuidKey(s, "1", n)
}

func TestIdleLockIsForgottenAfterForgetAfterAndNotBefore(t *testing.T) {
	for _, after := range []time.Duration{1, time.Millisecond, time.Minute, time.Hour, lock.Forever} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, memory.Options{ForgetAfter: after})
				k := s.key(0)
				s.use(k)
				// A use long after the first is what counts, also when the
				// lock became idle twice between two looks of whatever forgets.
				time.Sleep(min(after/2, 1000*time.Hour))
				s.use(k)
				time.Sleep(late(after) / 3)
				s.use(k)
				if after == lock.Forever {
					time.Sleep(1000 * time.Hour)
					if !s.remembered(k) {
						t.Fatal("a lock to be remembered for ever was forgotten")
					}
					return
				}
				time.Sleep(after - 1)
				if !s.remembered(k) {
					t.Fatalf("forgotten within %v", after-1)
				}
				time.Sleep(late(after) + 2)
				if s.remembered(k) {
					t.Fatalf("remembered after %v", after+late(after)+1)
				}
			})
		})
	}
}

func TestLockInUseIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.Options{ForgetAfter: time.Minute})
		anonymous, named := s.key(0), s.key(1)
		s.use(anonymous)
		s.use(named)
		time.Sleep(30 * time.Second) // both are old by now, and known to be idle
		s.take(lock.AcquireRequest{Key: anonymous})
		s.take(lock.AcquireRequest{Key: named, Holder: "a", TTL: time.Hour})
		time.Sleep(59 * time.Minute)
		for _, k := range []lock.Key{anonymous, named} {
			if v, err := s.Value(t.Context(), k, false); err != nil || v.Held != 1 {
				t.Fatalf("value gave %+v, error %v; want 1 held", v, err)
			}
		}
		s.free(anonymous, "")
		time.Sleep(time.Minute + 2*time.Second) // the named slot runs out meanwhile
		if s.remembered(anonymous) {
			t.Fatal("remembered after it was released")
		}
		time.Sleep(time.Minute)
		if s.remembered(named) {
			t.Fatal("remembered after its slot ran out")
		}
	})
}

func TestManyIdleLocksAreForgottenEachInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const locks, apart, after = 1000, 37 * time.Millisecond, 10 * time.Second
		s := open(t, memory.Options{ForgetAfter: after})
		check := func(n int, since time.Duration) {
			if since < after && !s.remembered(s.key(n)) {
				t.Fatalf("lock %d was forgotten after %v", n, since)
			}
			if since > after+late(after) && s.remembered(s.key(n)) {
				t.Fatalf("lock %d was remembered after %v", n, since)
			}
		}
		begun := time.Now()
		for n := range locks {
			s.use(s.key(n))
			time.Sleep(apart)
			for since := time.Duration(0); since < 2*after && int(since/apart) <= n; since += after / 64 {
				used := n - int(since/apart)
				check(used, time.Since(begun)-time.Duration(used)*apart)
			}
		}
		time.Sleep(after + late(after))
		for n := range locks {
			check(n, time.Since(begun)-time.Duration(n)*apart)
		}
	})
}

func TestShorterForgetAfterTakesEffectOnIdleLocks(t *testing.T) {
	for name, idle := range map[string]time.Duration{"just idle": 0, "idle for a while": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, memory.Options{})
				s.use(s.key(0))
				time.Sleep(idle)
				s.Configure(memory.Options{ForgetAfter: 30 * time.Minute})
				time.Sleep(30*time.Minute - idle - 1)
				if !s.remembered(s.key(0)) {
					t.Fatal("forgotten too early")
				}
				time.Sleep(late(30*time.Minute) + 2)
				if s.remembered(s.key(0)) {
					t.Fatal("still remembered")
				}

				s.use(s.key(1))
				time.Sleep(idle)
				s.Configure(memory.Options{ForgetAfter: time.Second})
				time.Sleep(time.Second + late(time.Second) + 1)
				if s.remembered(s.key(1)) {
					t.Fatal("still remembered")
				}
			})
		})
	}
}

func TestLongerForgetAfterTakesEffectOnIdleLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.Options{ForgetAfter: time.Minute})
		s.use(s.key(0))
		time.Sleep(30 * time.Second)
		s.Configure(memory.Options{})
		time.Sleep(memory.DefaultForgetAfter - 30*time.Second - 1)
		if !s.remembered(s.key(0)) {
			t.Fatal("forgotten too early")
		}
		time.Sleep(late(memory.DefaultForgetAfter) + 2)
		if s.remembered(s.key(0)) {
			t.Fatal("still remembered")
		}
	})
}

func TestLockBeyondMaxLocksReplacesAnIdleOne(t *testing.T) {
	const maxLocks = 100
	for _, aged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, memory.Options{MaxLocks: maxLocks})
			for n := range maxLocks {
				s.take(lock.AcquireRequest{Key: s.key(n)})
			}
			// Wherever the only idle lock is, a further one finds it.
			for n := range maxLocks {
				s.limited(s.key(maxLocks+n), maxLocks)
				s.free(s.key(n), "")
				if aged {
					time.Sleep(time.Minute)
				}
				s.take(lock.AcquireRequest{Key: s.key(maxLocks + n)})
				if s.remembered(s.key(n)) {
					t.Fatalf("lock %d is remembered beside %d others", n, maxLocks)
				}
			}
			for n := range maxLocks {
				if !s.remembered(s.key(maxLocks + n)) {
					t.Fatalf("held lock %d was forgotten", maxLocks+n)
				}
			}
		})
	}
}

func TestMaxLocksSparesLocksInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.Options{MaxLocks: 3})
		anonymous, named := s.key(0), s.key(1)
		s.use(anonymous)
		s.use(named)
		time.Sleep(time.Minute) // they are the oldest, and known to be idle, when they are taken again
		s.take(lock.AcquireRequest{Key: anonymous})
		s.take(lock.AcquireRequest{Key: named, Holder: "a"})
		for n := range 10 {
			s.use(s.key(2 + n))
		}
		s.take(lock.AcquireRequest{Key: s.key(20)})
		s.limited(s.key(21), 3)
		s.free(anonymous, "")
		s.free(named, "a")
	})
}

func TestResetMakesRoomForALock(t *testing.T) {
	s := open(t, memory.Options{MaxLocks: 1})
	s.take(lock.AcquireRequest{Key: s.key(0), Holder: "a"})
	s.limited(s.key(1), 1)
	if err := s.Reset(t.Context(), s.key(0)); err != nil {
		t.Fatal(err)
	}
	s.take(lock.AcquireRequest{Key: s.key(1)})
	s.limited(s.key(0), 1)
}

func TestLowerMaxLocksKeepsTheLocksThereAre(t *testing.T) {
	s := open(t, memory.Options{})
	for n := range 3 {
		s.take(lock.AcquireRequest{Key: s.key(n)})
	}
	s.Configure(memory.Options{MaxLocks: 2})
	s.limited(s.key(3), 2)
	s.free(s.key(0), "")
	s.take(lock.AcquireRequest{Key: s.key(0)}) // it is still there
	s.Configure(memory.Options{})
	s.take(lock.AcquireRequest{Key: s.key(3)})
}

func TestConcurrentCreatorsNeverExceedMaxLocks(t *testing.T) {
	const maxLocks, creators, each = 50, 8, 500
	s := open(t, memory.Options{MaxLocks: maxLocks})
	var held, most, refused atomic.Int64
	var done sync.WaitGroup
	for c := range creators {
		done.Go(func() {
			var mine []lock.Key
			for n := range each {
				k := s.key(c*each + n)
				res, err := s.Acquire(context.Background(), lock.AcquireRequest{Key: k})
				var limit *lock.LimitError
				switch {
				case errors.As(err, &limit):
					refused.Add(1)
				case err != nil || !res.Acquired:
					s.Errorf("acquire gave %+v, error %v", res, err)
					return
				default:
					mine = append(mine, k)
					now := held.Add(1)
					for top := most.Load(); now > top && !most.CompareAndSwap(top, now); top = most.Load() {
					}
				}
				// Together they try for more than there is room for.
				if len(mine) > 2*maxLocks/creators || err != nil && len(mine) > 0 {
					held.Add(-1)
					if released, err := s.Release(context.Background(), mine[0], ""); err != nil || !released {
						s.Errorf("release gave %t, error %v", released, err)
						return
					}
					mine = mine[1:]
				}
			}
		})
	}
	done.Wait()
	if most.Load() > maxLocks {
		t.Errorf("%d locks were held at once; want at most %d", most.Load(), maxLocks)
	}
	if refused.Load() == 0 {
		t.Error("nobody was refused; the test says nothing")
	}
	remembered := int64(0)
	for n := range creators * each {
		if s.remembered(s.key(n)) {
			remembered++
		}
	}
	if remembered > maxLocks || remembered < held.Load() {
		t.Errorf("%d locks are remembered, %d of them held; want at most %d", remembered, held.Load(), maxLocks)
	}

	// There is room for as many as are not held, and no more.
	for n := range int(maxLocks - held.Load()) {
		s.take(lock.AcquireRequest{Key: s.key(creators*each + n)})
	}
	s.limited(s.key(2*creators*each), maxLocks)
}

func TestForgottenLocksGiveTheirMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.Options{})
		s.leavesNothing(200_000, func() { time.Sleep(memory.DefaultForgetAfter + 2*time.Second) })
	})
}

func TestResetLocksGiveTheirMemoryBack(t *testing.T) {
	const locks = 50_000
	s := open(t, memory.Options{})
	s.leavesNothing(locks, func() {
		for n := range locks {
			if err := s.Reset(s.Context(), s.key(n)); err != nil {
				s.Fatal(err)
			}
		}
	})
}

// leavesNothing checks that forget takes the memory of so many idle locks away,
// all but a hundredth.
func (s subject) leavesNothing(locks int, forget func()) {
	s.Helper()
	before := heapInUse()
	useLocks(s, s.Backend, locks)
	full := heapInUse() - before
	if full < int64(locks)*100 {
		s.Fatalf("%d idle locks take %d bytes; the test says nothing", locks, full)
	}
	forget()
	if left := heapInUse() - before; left > full/100 {
		s.Errorf("%d bytes of %d are left", left, full)
	}
	runtime.KeepAlive(s.Backend)
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	s := open(t, memory.Options{})
	var waiters sync.WaitGroup
	for n := range 100 {
		k := uuidKey(t, "2", n)
		s.use(s.key(n)) // idle ever after
		s.take(lock.AcquireRequest{Key: k})
		s.take(lock.AcquireRequest{Key: k, Holder: "a", TTL: time.Hour})
		for _, r := range []lock.AcquireRequest{
			{Key: k, Wait: lock.Forever},
			{Key: k, Wait: time.Hour, Holder: "b", TTL: time.Hour},
		} {
			waiters.Go(func() {
				if _, err := s.Acquire(context.Background(), r); !errors.Is(err, lock.ErrClosing) {
					t.Errorf("a waiter got the error %v; want %v", err, lock.ErrClosing)
				}
			})
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	waiters.Wait()
	goleak.VerifyNone(t, leaks)
}

func TestNothingHappensAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.Options{ForgetAfter: time.Minute})
		s.use(s.key(0))
		s.take(lock.AcquireRequest{Key: s.key(1), Holder: "a", TTL: time.Minute})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // a timer left over would find nothing to work on
		if _, err := s.Value(t.Context(), s.key(0), true); !errors.Is(err, lock.ErrClosing) {
			t.Errorf("value gave the error %v; want %v", err, lock.ErrClosing)
		}
	})
}

func TestUncontendedPairAllocatesNothing(t *testing.T) {
	s := open(t, memory.Options{})
	idle, busy := s.key(0), uuidKey(t, "3", 0)
	s.take(lock.AcquireRequest{Key: busy})
	for name, k := range map[string]lock.Key{"of a lock that is idle between": idle, "of a lock that others hold too": busy} {
		run := gatewayPair(s.Backend, lock.AcquireRequest{Key: k, Wait: lock.Forever})
		if n := testing.AllocsPerRun(1000, func() {
			if err := run(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("a pair %s allocates %v times", name, n)
		}
	}
}
