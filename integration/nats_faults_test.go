package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

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

// A waiter keeps its place while the bucket has no leader, and is woken soon after it
// has one: a second or two, since nobody waits longer before connecting again. The
// client library of NATS would let a watcher be deaf for 17 seconds.
func TestNATSWaiterIsWokenSoonAfterTheServersAreBack(t *testing.T) {
	t.Parallel()
	const soon = 15 * time.Second // also in a slow minute
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			t.Parallel()
			cluster := natstest.StartCluster(t, servers, natstest.Options{})
			a, b := natsGateway(t, cluster.URLs()...), natsGateway(t, cluster.URLs()...)
			key := natsKey(t, "a")
			take(t, a, key)
			granted := make(chan error, 1)
			go func() { // ends with the grant, or the test
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
			back := writesAgain(t, cluster)
			leader := cluster.Leader(t, natsStream)
			leader.Kill(t)
			if servers == 1 {
				if _, err := a.Release(t.Context(), key, ""); !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrOutcomeUnknown) {
					t.Errorf("without server a release gave the error %v", err)
				}
				leader.Restart(t)
			}
			process.Await(t, "the lock is released", func() bool {
				released, err := a.Release(t.Context(), key, "")
				return err == nil && released
			})
			if err := <-granted; err != nil {
				t.Error(err)
			}
			took := time.Since(<-back)
			t.Logf("%v after the servers were back the waiter had the lock", took)
			if took > soon {
				t.Errorf("that is more than %v", soon)
			}
		})
	}
}

// writesAgain tells when the bucket is written again after writes have failed.
func writesAgain(t *testing.T, c *natstest.Cluster) <-chan time.Time {
	t.Helper()
	conn, again := c.Connect(t), make(chan time.Time, 1)
	go func() { // ends with the test at the latest, and its connection
		for failed := false; ; {
			_, err := conn.Request("$KV."+natsBucket+".probe", nil, 200*time.Millisecond)
			if err == nil && failed || conn.IsClosed() {
				again <- time.Now()
				return
			}
			failed = failed || err != nil
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return again
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
	process.Await(t, "enough is written", func() bool { return count.Load() > 500 })
	for _, m := range cluster.Members() {
		m.Kill(t)
	}
	cancel()
	writers.Wait()
	for _, m := range cluster.Members() {
		m.Restart(t)
	}
	process.Await(t, "the servers answer", func() bool {
		_, err := s.Get(t.Context(), "any")
		return err == nil
	})
	var lost atomic.Int64
	readers, ctx := errgroup.WithContext(t.Context())
	readers.SetLimit(16)
	acknowledged.Range(func(key, revision any) bool {
		readers.Go(func() error {
			e, err := s.Get(ctx, key.(string))
			if err == nil && e.Revision != revision {
				lost.Add(1)
			}
			return err
		})
		return true
	})
	s.must(readers.Wait())
	t.Logf("%d of %d acknowledged writes were lost", lost.Load(), count.Load())
	if n := lost.Load(); n > 0 {
		t.Errorf("%d acknowledged writes were lost", n)
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
		before := granted.Load()
		cluster.StepDown(t, natsStream)
		process.Await(t, "some get on, or the time is up", func() bool { return granted.Load() > before+20 || ctx.Err() != nil })
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
