package replicated_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
	"github.com/lockgateway/lockgateway/lock"
)

// world is a cluster and its gateways inside a bubble of fake time, for tests
// that script an exact course of events.
type world struct {
	*testing.T
	cluster *hostile.Cluster
	key     lock.Key
	stores  []replicated.Store
	gates   []*replicated.Backend
}

const requestTimeout = 2 * time.Second

// script runs a test with the given number of gateways on one lock of one slot.
func script(t *testing.T, config hostile.Config, gateways int, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, cluster: hostile.New(t, config), key: stormKey(t, "1/x")}
		defer w.cluster.Close()
		defer func() {
			for _, g := range w.gates {
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			}
		}()
		for range gateways {
			w.addGateway()
		}
		synctest.Wait() // the sessions are open
		test(w)
	})
}

func (w *world) addGateway() *replicated.Backend {
	store := w.cluster.Open()
	g := replicated.New(store, replicated.Options{RequestTimeout: requestTimeout})
	w.stores, w.gates = append(w.stores, store), append(w.gates, g)
	return g
}

func (w *world) request(holder string, wait time.Duration) lock.AcquireRequest {
	return lock.AcquireRequest{Key: w.key, Holder: holder, Wait: wait}
}

// take acquires at once.
func (w *world) take(g *replicated.Backend, holder string) lock.AcquireResult {
	w.Helper()
	res, err := g.Acquire(w.Context(), w.request(holder, 0))
	if err != nil || !res.Acquired {
		w.Fatalf("acquire gave %+v, error %v; want acquired", res, err)
	}
	return res
}

func (w *world) release(g *replicated.Backend, holder string, want bool) {
	w.Helper()
	ok, err := g.Release(w.Context(), w.key, holder)
	if err != nil || ok != want {
		w.Fatalf("release gave %v, error %v; want %v", ok, err, want)
	}
}

func (w *world) value(g *replicated.Backend) lock.Value {
	w.Helper()
	v, err := g.Value(w.Context(), w.key, true)
	if err != nil {
		w.Fatalf("value failed: %v", err)
	}
	return v
}

func (w *world) held(g *replicated.Backend, want int64) {
	w.Helper()
	if v := w.value(g); v.Held != want {
		w.Fatalf("value gave %+v; want %d held", v, want)
	}
}

// call is an acquire that is under way.
type call struct {
	w    *world
	done chan struct{}
	res  lock.AcquireResult
	err  error
	took time.Duration
}

// begin begins an acquire, and returns once everybody waits.
func (w *world) begin(g *replicated.Backend, req lock.AcquireRequest) *call {
	c := w.start(g, req)
	synctest.Wait()
	return c
}

// start begins an acquire.
func (w *world) start(g *replicated.Backend, req lock.AcquireRequest) *call {
	c := &call{w: w, done: make(chan struct{})}
	started := time.Now()
	go func() {
		c.res, c.err = g.Acquire(w.Context(), req)
		c.took = time.Since(started)
		close(c.done)
	}()
	return c
}

// beginHeld begins an acquire, and returns once its swap is held.
func (w *world) beginHeld(g *replicated.Backend, req lock.AcquireRequest) (*call, *hostile.Held) {
	h := w.cluster.Hold(anySwap)
	c := w.start(g, req)
	<-h.Caught()
	return c, h
}

// beginHeldOf is beginHeld with the first gateway, for a swap that match accepts.
func (w *world) beginHeldOf(match func(replicated.Swap) bool, req lock.AcquireRequest) (*call, *hostile.Held) {
	h := w.cluster.Hold(match)
	c := w.start(w.gates[0], req)
	<-h.Caught()
	return c, h
}

func (c *call) waits() {
	c.w.Helper()
	select {
	case <-c.done:
		c.w.Fatalf("acquire gave %+v, error %v; want it to wait", c.res, c.err)
	default:
	}
}

func (c *call) acquired() lock.AcquireResult {
	c.w.Helper()
	<-c.done
	if c.err != nil || !c.res.Acquired {
		c.w.Fatalf("acquire gave %+v, error %v; want acquired", c.res, c.err)
	}
	return c.res
}

func (c *call) refused() {
	c.w.Helper()
	<-c.done
	if c.err != nil || c.res.Acquired {
		c.w.Fatalf("acquire gave %+v, error %v; want not acquired", c.res, c.err)
	}
}

func (c *call) failed(want error) {
	c.w.Helper()
	<-c.done
	if !errors.Is(c.err, want) {
		c.w.Fatalf("acquire gave %+v, error %v; want error %v", c.res, c.err, want)
	}
}

func anySwap(replicated.Swap) bool { return true }

var strict, loose = hostile.Config{Kind: hostile.Strict}, hostile.Config{Kind: hostile.Loose}

func TestUncontendedPairIsTwoSwapsAndNothingElse(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		before := w.cluster.Counts()
		for range 10 {
			w.take(w.gates[0], "")
			w.release(w.gates[0], "", true)
		}
		after := w.cluster.Counts()
		if n := after.Swaps - before.Swaps; n != 20 {
			w.Errorf("10 pairs made %d swaps; want 20", n)
		}
		if after.Gets != before.Gets || after.Follows != 0 {
			w.Errorf("10 pairs made %d reads and left %d follows; want none", after.Gets-before.Gets, after.Follows)
		}
	})
}

func TestAnswersThatChangeNothingMakeOneReadAndNoSwap(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		w.take(w.gates[0], "")
		before := w.cluster.Counts()
		w.held(w.gates[0], 1)
		w.begin(w.gates[0], w.request("", 0)).refused()
		after := w.cluster.Counts()
		if after.Swaps != before.Swaps || after.Gets != before.Gets+2 {
			w.Errorf("a value and a refused acquire made %d swaps and %d reads; want 0 and 2", after.Swaps-before.Swaps, after.Gets-before.Gets)
		}
	})
}

func TestHotLockIsCommittedInGroups(t *testing.T) {
	config := strict
	config.Faults.Delay = time.Millisecond
	script(t, config, 1, func(w *world) {
		before := w.cluster.Counts()
		var clients sync.WaitGroup
		const pairs = 64 * 10
		for range 64 {
			clients.Go(func() {
				for range pairs / 64 {
					if res, err := w.gates[0].Acquire(w.Context(), w.request("", lock.Forever)); err != nil || !res.Acquired {
						w.Errorf("acquire gave %+v, error %v", res, err)
					}
					if ok, err := w.gates[0].Release(w.Context(), w.key, ""); err != nil || !ok {
						w.Errorf("release gave %v, error %v", ok, err)
					}
				}
			})
		}
		clients.Wait()
		if n := w.cluster.Counts().Swaps - before.Swaps; n > pairs*12/10 {
			w.Errorf("%d pairs made %d swaps; want at most 1.2 for each", pairs, n)
		}
	})
}

func TestLostAnswerIsSettledByTheIdenticalSwap(t *testing.T) {
	for name, applied := range map[string]bool{"applied": true, "not applied": false} {
		t.Run(name, func(t *testing.T) {
			script(t, strict, 1, func(w *world) {
				w.take(w.gates[0], "")
				w.release(w.gates[0], "", true)
				c, h := w.beginHeld(w.gates[0], w.request("", 0))
				first := h.Swap()
				next := w.cluster.Hold(anySwap)
				h.Release(applied, false)
				<-next.Caught()
				if again := next.Swap(); again.Expect != first.Expect || string(again.Value) != string(first.Value) {
					w.Errorf("the swap in doubt was followed by another one")
				}
				next.Release(true, true)
				synctest.Wait()
				c.acquired()
				w.held(w.gates[0], 1)
			})
		})
	}
}

func TestUnknownAcquireIsGivenBackOnceTheStoreAnswers(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		w.take(w.gates[0], "")
		w.release(w.gates[0], "", true)
		c, h := w.beginHeld(w.gates[0], w.request("", 0))
		w.cluster.Cut(w.stores[0])
		synctest.Wait()
		c.failed(lock.ErrOutcomeUnknown)
		h.Release(true, false)
		w.held(w.gates[1], 1)
		w.cluster.Heal(w.stores[0])
		time.Sleep(time.Minute)
		w.held(w.gates[1], 0)
	})
}

// B4: what was answered as unknown is not done again: neither if it had been
// done, nor if others came first.
func TestB4UnknownReleaseIsNotRepeated(t *testing.T) {
	for name, applied := range map[string]bool{"applied": true, "not applied": false} {
		t.Run(name, func(t *testing.T) {
			script(t, strict, 2, func(w *world) {
				w.take(w.gates[0], "")
				released := make(chan error)
				h := w.cluster.Hold(anySwap)
				go func() {
					_, err := w.gates[0].Release(w.Context(), w.key, "")
					released <- err
				}()
				<-h.Caught()
				w.cluster.Cut(w.stores[0])
				if err := <-released; !errors.Is(err, lock.ErrOutcomeUnknown) {
					w.Fatalf("release failed with %v; want an unknown outcome", err)
				}
				h.Release(applied, false)
				if applied {
					w.take(w.gates[1], "")
				}
				waiting := w.begin(w.gates[1], w.request("", time.Hour))
				w.cluster.Heal(w.stores[0])
				time.Sleep(time.Minute)
				waiting.waits()
				w.release(w.gates[1], "", true)
				waiting.acquired()
			})
		})
	}
}

func TestStuckCreateIsFencedOff(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		c, h := w.beginHeld(w.gates[0], w.request("", 0))
		h.Lose()
		synctest.Wait()
		c.acquired() // it was made again
		w.release(w.gates[1], "", true)
		w.cluster.Forget(w.key.Name())
		h.Release(true, false) // minutes later
		if v := w.value(w.gates[1]); !v.Fresh {
			w.Fatalf("value gave %+v; want a lock that nobody knows", v)
		}
	})
}

// Fencing off one lock's create stops those of other locks that are under way;
// they are made again.
func TestFenceForOneLockDoesNotFailAnother(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		of := func(key string) func(replicated.Swap) bool {
			return func(s replicated.Swap) bool { return s.Key == key }
		}
		other := w.cluster.Hold(of("1/other"))
		c := w.start(w.gates[0], lock.AcquireRequest{Key: stormKey(w.T, "1/other")})
		<-other.Caught()
		d, h := w.beginHeldOf(of("1/x"), w.request("", 0))
		h.Lose()
		d.acquired()
		other.Release(true, true)
		c.acquired()
	})
}

func TestUnreadableRecordIsLeftAlone(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		for _, value := range []string{"something else", "LG\xff\x00newer"} {
			w.cluster.Put(w.key.Name(), []byte(value))
			c := w.begin(w.gates[0], w.request("", time.Minute))
			c.failed(lock.ErrUnavailable)
			if record := (*lock.RecordError)(nil); !errors.As(c.err, &record) || record.Key != w.key.Name() {
				w.Errorf("the error is %v; want one that names the key", c.err)
			}
			w.begin(w.gates[0], w.request("a", 0)).failed(lock.ErrUnavailable)
			if _, err := w.gates[0].Release(w.Context(), w.key, ""); !errors.Is(err, lock.ErrUnavailable) {
				w.Errorf("release failed with %v", err)
			}
			if err := w.gates[0].Reset(w.Context(), w.key); !errors.Is(err, lock.ErrUnavailable) {
				w.Errorf("reset failed with %v", err)
			}
			if _, err := w.gates[0].Value(w.Context(), w.key, false); !errors.Is(err, lock.ErrUnavailable) {
				w.Errorf("value failed with %v", err)
			}
			if got := w.cluster.Record(w.key.Name()).Value; string(got) != value {
				w.Errorf("the record is %q now", got)
			}
		}
		w.key = stormKey(w.T, "1/other")
		w.take(w.gates[0], "")
	})
}

// What is logged of a record that cannot be read is one line, not one per
// request.
func TestUnreadableRecordIsLoggedOnce(t *testing.T) {
	script(t, strict, 0, func(w *world) {
		core, logs := observer.New(zap.WarnLevel)
		g := replicated.New(w.cluster.Open(), replicated.Options{Logger: zap.New(core)})
		w.gates = append(w.gates, g)
		w.cluster.Put(w.key.Name(), []byte("something else"))
		for range 3 {
			w.begin(g, w.request("", time.Second)).failed(lock.ErrUnavailable)
			w.begin(g, w.request("", 0)).failed(lock.ErrUnavailable)
			if _, err := g.Value(w.Context(), w.key, false); !errors.Is(err, lock.ErrUnavailable) {
				w.Errorf("value failed with %v", err)
			}
		}
		if n := logs.Len(); n != 1 {
			w.Errorf("%d lines were logged: %v", n, logs.All())
		}
		for _, line := range logs.All() {
			if strings.Contains(line.Message+fmt.Sprint(line.ContextMap()), w.key.ID()+" ") {
				w.Errorf("a lock id was logged: %v", line)
			}
		}
	})
}

func TestTroubleWithTheStoreIsLoggedOnce(t *testing.T) {
	script(t, strict, 0, func(w *world) {
		core, logs := observer.New(zap.InfoLevel)
		store := w.cluster.Open()
		g := replicated.New(store, replicated.Options{Logger: zap.New(core), RequestTimeout: requestTimeout})
		w.gates = append(w.gates, g)
		w.take(g, "")
		backup := w.cluster.Snapshot()
		w.cluster.Cut(store)
		for range 3 {
			w.begin(g, w.request("", 0)).failed(lock.ErrUnavailable)
		}
		w.cluster.Heal(store)
		for range 20 {
			time.Sleep(time.Second)
			w.value(g)
		}
		w.cluster.Restore(backup)
		w.value(g)
		w.value(g)
		for text, want := range map[string]int{"does not answer": 1, "answers again": 1, "restored": 1} {
			if n := logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, text) && e.Message != "" }).Len(); n != want {
				w.Errorf("%q was logged %d times; want %d", text, n, want)
			}
		}
	})
}

// Where a store has removed the record of an idle lock, it is made again.
func TestForgottenRecordIsMadeAnew(t *testing.T) {
	for name, config := range map[string]hostile.Config{"Strict": strict, "Loose": loose} {
		t.Run(name, func(t *testing.T) {
			script(t, config, 1, func(w *world) {
				w.take(w.gates[0], "")
				w.release(w.gates[0], "", true)
				w.cluster.Forget(w.key.Name())
				w.take(w.gates[0], "")
				w.held(w.gates[0], 1)
			})
		})
	}
}

// A lock that is idle again, since others resolved its waiters, is not followed
// for ever.
func TestNothingFollowsAnIdleLock(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		w.take(w.gates[0], "")
		c := w.begin(w.gates[1], w.request("", lock.Forever))
		if err := w.gates[0].Reset(w.Context(), w.key); err != nil {
			w.Fatal(err)
		}
		c.refused()
		time.Sleep(time.Minute)
		if n := w.cluster.Counts().Follows; n != 0 {
			w.Errorf("%d follows are left", n)
		}
	})
}

func TestRestoreWhileASwapIsInDoubt(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		w.take(w.gates[0], "a")
		backup := w.cluster.Snapshot()
		w.release(w.gates[0], "a", true)
		c, h := w.beginHeld(w.gates[0], w.request("b", 0))
		w.cluster.Restore(backup)
		h.Release(false, false)
		<-c.done
		if c.err == nil {
			w.Errorf("acquire gave %+v; want an error", c.res)
		}
		w.release(w.gates[0], "a", true)
		w.take(w.gates[0], "c")
	})
}

// Revisions recur in a store that was restored from a backup, and mean something
// else then.
func TestRestoredStoreIsReadAnew(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		w.take(w.gates[0], "a")
		backup := w.cluster.Snapshot()
		w.release(w.gates[0], "a", true)
		w.take(w.gates[0], "b")
		w.cluster.Restore(backup)
		w.release(w.gates[1], "a", true)
		w.take(w.gates[1], "c")
		w.key = stormKey(w.T, "1/other")
		w.held(w.gates[0], 0) // any answer tells the gateway
		w.key = stormKey(w.T, "1/x")
		w.release(w.gates[0], "b", false)
		if v := w.value(w.gates[0]); len(v.Holders) != 1 || v.Holders[0].Name != "c" {
			w.Fatalf("value gave %+v; want c to hold", v)
		}
	})
}
