package replicated_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
	"github.com/lockgateway/lockgateway/lock"
)

// B1: a waiter whose gateway lost its session is told so, and never granted by
// what it hears later.
func TestB1WaitersOfALostSessionGet503(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		w.take(w.gates[0], "")
		lost := w.begin(w.gates[1], w.request("", lock.Forever))
		lost.waits()
		next := w.begin(w.gates[0], w.request("", lock.Forever))
		w.cluster.EndSessions(w.stores[1])
		lost.failed(lock.ErrUnavailable)
		w.release(w.gates[0], "", true)
		next.acquired()
		w.held(w.gates[1], 1)
		synctest.Wait() // until there is a new session
		again := w.begin(w.gates[1], w.request("", lock.Forever))
		again.waits()
		w.release(w.gates[1], "", true)
		again.acquired()
	})
}

func TestWaitersOfADeadGatewayArePruned(t *testing.T) {
	for name, config := range map[string]hostile.Config{"Strict": strict, "Loose": loose} {
		t.Run(name, func(t *testing.T) {
			script(t, config, 2, func(w *world) {
				w.take(w.gates[0], "")
				dead := w.begin(w.gates[1], w.request("", time.Hour))
				next := w.begin(w.gates[0], w.request("", lock.Forever))
				w.release(w.gates[0], "", true)
				dead.acquired() // while its gateway lives
				after := w.begin(w.gates[1], w.request("", time.Hour))
				w.cluster.Cut(w.stores[1])
				w.release(w.gates[0], "", true)
				next.acquired()
				last := w.begin(w.gates[0], w.request("", lock.Forever))
				w.release(w.gates[0], "", true)
				last.acquired()
				within := w.stores[1].SessionTTL() + time.Millisecond
				if config.Kind == hostile.Loose {
					within += 2 * time.Second // no event tells it
				}
				if last.took > within {
					w.Errorf("the place of a dead gateway was in the way for %v", last.took)
				}
				w.cluster.Heal(w.stores[1])
				after.failed(lock.ErrUnavailable)
			})
		})
	}
}

// Nor are they in the way of who comes later, does not wait, and heard nothing.
func TestPlacesOfADeadGatewayAreNotCounted(t *testing.T) {
	script(t, loose, 2, func(w *world) {
		w.take(w.gates[0], "")
		dead := w.begin(w.gates[1], w.request("", time.Hour))
		w.cluster.Cut(w.stores[1])
		time.Sleep(time.Minute)
		if v := w.value(w.gates[0]); v.Waiting != 0 {
			w.Errorf("value gave %+v; want nobody to wait", v)
		}
		w.release(w.gates[0], "", true)
		w.take(w.addGateway(), "")
		w.cluster.Heal(w.stores[1])
		dead.failed(lock.ErrUnavailable)
	})
}

func TestCommittedGrantIsAnsweredThoughTheSessionEnded(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		w.take(w.gates[0], "")
		w.release(w.gates[0], "", true)
		c, h := w.beginHeld(w.gates[0], w.request("", time.Hour))
		w.cluster.EndSessions(w.stores[0])
		synctest.Wait()
		h.Release(true, false)
		synctest.Wait()
		c.acquired()
		w.held(w.gates[1], 1)
	})
}

func TestPlaceThatCommitsAfterTheSessionEndedIsLost(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		w.take(w.gates[0], "")
		c, h := w.beginHeld(w.gates[0], w.request("", time.Hour))
		w.cluster.EndSessions(w.stores[0])
		synctest.Wait()
		h.Release(true, false)
		synctest.Wait()
		c.failed(lock.ErrUnavailable)
		next := w.begin(w.gates[1], w.request("", time.Hour))
		w.release(w.gates[1], "", true)
		next.acquired()
	})
}

// A gateway that lives and does not take what it is entitled to is passed over
// after two session times.
func TestStalledGatewayIsPassedOver(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		w.take(w.gates[0], "")
		stalled := w.begin(w.gates[1], w.request("", time.Hour))
		next := w.begin(w.gates[0], w.request("", time.Hour))
		stop := w.freezeSwaps(w.stores[1])
		w.release(w.gates[0], "", true)
		next.acquired()
		if next.took < 2*w.stores[0].SessionTTL() {
			w.Errorf("a gateway was passed over after %v", next.took)
		}
		stop()
		stalled.failed(lock.ErrUnavailable)
		w.held(w.gates[0], 1)
	})
}

// freezeSwaps keeps swaps of a gateway from arriving until it is told to stop.
func (w *world) freezeSwaps(store replicated.Store) (stop func()) {
	ended := make(chan struct{})
	var frozen sync.WaitGroup
	frozen.Go(func() {
		for {
			h := w.cluster.Hold(func(s replicated.Swap) bool { return hostile.Owns(store, s.Session) })
			select {
			case <-h.Caught():
			case <-ended:
				h.Release(false, false)
				return
			}
		}
	})
	return func() {
		close(ended)
		frozen.Wait()
	}
}

// Sessions may come and go while a swap stays in doubt.
func TestSessionsEndWhileASwapIsInDoubt(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		w.take(w.gates[1], "")
		stop := w.freezeSwaps(w.stores[0])
		c := w.begin(w.gates[0], w.request("", lock.Forever))
		for range 3 {
			w.cluster.EndSessions(w.stores[0])
			time.Sleep(time.Second)
		}
		<-c.done
		if c.err == nil {
			w.Errorf("acquire gave %+v; want an error", c.res)
		}
		stop()
		w.release(w.gates[1], "", true)
		w.take(w.gates[0], "")
	})
}

// The record of a lock that is used for long does not grow with the gateways
// that there ever were.
func TestEndedSessionsAreForgotten(t *testing.T) {
	script(t, loose, 1, func(w *world) {
		for range 150 {
			g := replicated.New(w.cluster.Open(), replicated.Options{})
			w.take(g, "")
			w.release(g, "", true)
			if err := g.Close(); err != nil {
				w.Error(err)
			}
			time.Sleep(time.Minute)
			w.take(w.gates[0], "")
			w.release(w.gates[0], "", true)
		}
		if n := len(w.cluster.Record(w.key.Name()).Value); n > 1000 {
			w.Errorf("the record has %d bytes", n)
		}
	})
}

func TestLostNewsIsMadeUpForByReading(t *testing.T) {
	config := strict
	config.Faults.EventLoss = 1
	script(t, config, 2, func(w *world) {
		w.take(w.gates[0], "")
		c := w.begin(w.gates[1], w.request("", lock.Forever))
		w.release(w.gates[0], "", true)
		c.acquired()
	})
}

func TestSilentStoreIsAnsweredFor(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		w.take(w.gates[0], "")
		waiting := w.begin(w.gates[0], w.request("", 3*time.Second))
		w.cluster.Cut(w.stores[0])
		try := w.begin(w.gates[0], w.request("", 0))
		if _, err := w.gates[0].Release(context.Background(), w.key, ""); !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrOutcomeUnknown) {
			w.Errorf("release failed with %v", err)
		}
		if _, err := w.gates[0].Value(context.Background(), w.key, false); !errors.Is(err, lock.ErrUnavailable) {
			w.Errorf("value failed with %v", err)
		}
		<-try.done
		<-waiting.done
		for _, c := range []*call{try, waiting} {
			if c.err == nil || c.took > 3*time.Second+2*requestTimeout {
				w.Errorf("acquire gave %+v, error %v after %v", c.res, c.err, c.took)
			}
		}
		forever := w.begin(w.gates[0], w.request("", lock.Forever))
		forever.failed(lock.ErrUnavailable) // without a session nobody can wait
		w.cluster.Heal(w.stores[0])
		time.Sleep(time.Minute)
		w.value(w.gates[0])
	})
}

func TestDrainAnswersWaitersAndKeepsServing(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		w.take(w.gates[0], "")
		here, there := w.begin(w.gates[0], w.request("", time.Hour)), w.begin(w.gates[1], w.request("", time.Hour))
		w.gates[0].Drain()
		here.failed(lock.ErrClosing)
		there.waits()
		w.begin(w.gates[0], w.request("", time.Hour)).failed(lock.ErrClosing)
		w.begin(w.gates[0], w.request("", 0)).refused()
		if v := w.value(w.gates[0]); v.Waiting != 1 {
			w.Errorf("value gave %+v; want one that waits", v)
		}
		w.release(w.gates[0], "", true)
		there.acquired()
	})
}

func TestGrantInFlightIsAnsweredWhenDraining(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		c, h := w.beginHeld(w.gates[0], w.request("", time.Hour))
		w.gates[0].Drain()
		synctest.Wait()
		h.Release(true, true)
		synctest.Wait()
		c.acquired()
	})
}

func TestCloseIsBoundedAndFinal(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		w.take(w.gates[0], "")
		c := w.begin(w.gates[0], w.request("", time.Hour))
		w.cluster.Cut(w.stores[0])
		before := time.Now()
		_ = w.gates[0].Close()
		if took := time.Since(before); took > 10*time.Second {
			w.Errorf("Close took %v", took)
		}
		c.failed(lock.ErrClosing)
		w.begin(w.gates[0], w.request("", 0)).failed(lock.ErrClosing)
	})
}
