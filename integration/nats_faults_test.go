package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/nats"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/lock"
)

// natsGateway opens what a gateway runs, with its defaults. It ends with the test.
func natsGateway(t *testing.T, servers ...string) lock.Backend {
	t.Helper()
	o := natsOptions(servers...)
	o.SessionTTL = nats.DefaultSessionTTL
	store, err := nats.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	b := replicated.New(store, replicated.Options{RequestTimeout: nats.DefaultRequestTimeout})
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func natsKey(t *testing.T, id string) lock.Key {
	t.Helper()
	key, err := lock.NewKey("1", id)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// take acquires until that succeeds.
func take(t *testing.T, b lock.Backend, key lock.Key) {
	t.Helper()
	process.Await(t, "the lock is acquired", func() bool {
		res, err := b.Acquire(t.Context(), lock.AcquireRequest{Key: key, Wait: time.Second})
		return err == nil && res.Acquired
	})
}

// A waiter keeps its place while the server is away, and is woken soon after it is
// back.
func TestNATSWaiterIsWokenSoonAfterItsServerIsBack(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	a, b := natsGateway(t, cluster.URLs()...), natsGateway(t, cluster.URLs()...)
	key := natsKey(t, "a")
	take(t, a, key)
	granted := make(chan error, 1)
	go func() {
		res, err := b.Acquire(t.Context(), lock.AcquireRequest{Key: key, Wait: lock.Forever})
		if err == nil && !res.Acquired {
			err = errors.New("it was not acquired")
		}
		granted <- err
	}()
	process.Await(t, "somebody waits", func() bool {
		v, err := a.Value(t.Context(), key, true)
		return err == nil && v.Waiting == 1
	})
	m := cluster.Members()[0]
	m.Kill(t)
	if _, err := a.Release(t.Context(), key, ""); !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrOutcomeUnknown) {
		t.Errorf("without server a release gave the error %v", err)
	}
	m.Restart(t)
	back := time.Now()
	process.Await(t, "the lock is released", func() bool {
		_, err := a.Release(t.Context(), key, "")
		return err == nil
	})
	if err := <-granted; err != nil {
		t.Error(err)
	}
	t.Logf("%v after the server was back the waiter had the lock", time.Since(back))
}

// Nothing that was acknowledged is lost when all servers die at once.
func TestNATSStoreSurvivesTheDeathOfAllServers(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3, natstest.Options{SyncAlways: true})
	s := openNATSSession(t, natsOptions(cluster.URLs()...))
	var acknowledged sync.Map
	var writers sync.WaitGroup
	ctx, cancel := context.WithCancel(s.ctx)
	var count atomic.Int64
	for n := range 16 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprint(n, " ", i)
				res, err := s.Swap(ctx, replicated.Swap{Key: key, Value: []byte(key), Session: s.session})
				if err == nil && res.Applied {
					acknowledged.Store(key, res.Entry.Revision)
					count.Add(1)
				}
			}
		})
	}
	process.Await(t, "enough is written", func() bool { return count.Load() > 1000 })
	for _, m := range cluster.Members() {
		m.Kill(t)
	}
	cancel()
	writers.Wait()
	for _, m := range cluster.Members() {
		m.Restart(t)
	}
	process.Await(t, "the servers answer", func() bool {
		_, err := s.Get(s.ctx, "any")
		return err == nil
	})
	lost := 0
	acknowledged.Range(func(key, revision any) bool {
		if e := s.get(key.(string)); e.Revision != revision {
			lost++
		}
		return true
	})
	t.Logf("%d of %d acknowledged writes were lost", lost, count.Load())
	if lost > 0 {
		t.Errorf("%d acknowledged writes were lost", lost)
	}
}

// While the stream's leader steps down again and again, nobody holds twice, and
// everybody gets on.
func TestNATSLeadersThatStepDownLetNobodyHoldTwice(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3, natstest.Options{})
	gateways := []lock.Backend{natsGateway(t, cluster.URLs()...), natsGateway(t, cluster.URLs()...), natsGateway(t, cluster.URLs()...)}
	key := natsKey(t, "a")
	take(t, gateways[0], key)
	if _, err := gateways[0].Release(t.Context(), key, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var inside, granted, unknown, unavailable atomic.Int64
	var clients sync.WaitGroup
	for n := range 12 {
		clients.Go(func() {
			holder := fmt.Sprint("client ", n)
			for ctx.Err() == nil {
				res, err := gateways[n%3].Acquire(ctx, lock.AcquireRequest{Key: key, Wait: 5 * time.Second, Holder: holder})
				if errors.Is(err, lock.ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded) {
					unknown.Add(1)
				} else if err != nil {
					unavailable.Add(1)
				}
				if err != nil || !res.Acquired {
					continue
				}
				granted.Add(1)
				if inside.Add(1) != 1 {
					t.Errorf("%s is not alone", holder)
				}
				inside.Add(-1)
				for released := false; !released; {
					_, err := gateways[n%3].Release(t.Context(), key, holder)
					released = err == nil
				}
			}
		})
	}
	downs := 0
	for ; ctx.Err() == nil; downs++ {
		cluster.StepDown(t, natsStream)
		time.Sleep(500 * time.Millisecond)
	}
	clients.Wait()
	t.Logf("%d grants over %d elections; %d unknown, %d unavailable", granted.Load(), downs, unknown.Load(), unavailable.Load())
	if granted.Load() == 0 {
		t.Error("nobody got on")
	}
}

// Locks are lost with their bucket, which is said; the next ones work.
func TestNATSGatewayGoesOnAfterItsBucketWasDeleted(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	a := natsGateway(t, cluster.URLs()...)
	key := natsKey(t, "a")
	take(t, a, key)
	if err := cluster.JetStream(t).DeleteStream(t.Context(), natsStream); err != nil {
		t.Fatal(err)
	}
	take(t, a, key)
	if v, err := a.Value(t.Context(), key, false); err != nil || v.Held != 1 {
		t.Errorf("the value is %+v, error %v", v, err)
	}
}
