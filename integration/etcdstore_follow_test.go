package integration_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
)

func TestEtcdStoreFollowsOverGaps(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{})
	line := relay.New(t, cluster.Members()[0].Address())
	s := openSession(t, storeOptions("http://"+line.Address()))
	direct := openSession(t, storeOptions(cluster.Endpoints()...))
	news := s.follow("a")
	if e := s.next(news); !e.Missed {
		t.Fatalf("the first event is %+v", e)
	}
	e := direct.create("a")
	if got := s.next(news); got.Entry.Revision != e.Revision || string(got.Entry.Value) != "created" {
		t.Errorf("Follow told of %+v; want revision %d", got, e.Revision)
	}

	// While nothing comes through, changes are made and compacted.
	line.Cut()
	for range 20 {
		e = direct.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("changed")})
	}
	cluster.Compact(t)
	line.Heal()
	if got := s.next(news); !got.Missed {
		t.Errorf("after a gap Follow told of %+v", got)
	}
	e = direct.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("again")})
	if got := s.next(news); got.Entry.Revision != e.Revision {
		t.Errorf("Follow told of %+v; want revision %d", got, e.Revision)
	}

	if _, err := cluster.Client().Delete(s.ctx, "/lockgateway/locks/a"); err != nil {
		t.Fatal(err)
	}
	if got := s.next(news); !got.Missed {
		t.Errorf("after a record was deleted Follow told of %+v", got)
	}
}

func TestEtcdStoreFollowsAnotherMember(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.StartCluster(t, 3, etcdtest.Options{})
	s := openSession(t, storeOptions(cluster.Endpoints()...))
	news := s.follow("a")
	s.next(news)
	e := s.create("a")
	s.next(news)
	for range 3 {
		m := cluster.Leader(t)
		m.Kill(t)
		process.Await(t, "a swap is applied without the member", func() bool {
			res, err := s.swapWithin(3*time.Second, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
			if e = s.get("a"); err == nil {
				return res.Applied
			}
			return false
		})
		m.Restart(t)
	}
	since := e.Revision
	process.Await(t, "Follow tells of a change", func() bool {
		e = s.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("c")})
		for len(news) > 0 {
			if s.next(news).Entry.Revision > since {
				return true
			}
		}
		return false
	})
	select {
	case <-s.session.Done():
		t.Error("the session has ended")
	default:
	}
}

func TestEtcdStoreFollowsThousandsOfRecords(t *testing.T) {
	const records = 10_000
	cluster := etcdtest.Start(t, etcdtest.Options{})
	line := relay.New(t, cluster.Members()[0].Address())
	s := openSession(t, storeOptions("http://"+line.Address()))
	before := runtime.NumGoroutine()
	missed := make(chan struct{}, records)
	begun := time.Now()
	for i := range records {
		s.Follow(s.ctx, string(rune('a'+i)), func(e replicated.Event) {
			if e.Missed {
				missed <- struct{}{}
			}
		})
	}
	await := func() {
		for range records {
			select {
			case <-missed:
			case <-s.ctx.Done():
				t.Fatal("not all are followed")
			}
		}
	}
	await()
	t.Logf("following %d records takes %v and %d goroutines", records, time.Since(begun), runtime.NumGoroutine()-before)
	if n := runtime.NumGoroutine() - before; n > 100 {
		t.Errorf("%d more goroutines", n)
	}
	begun = time.Now()
	line.Cut()
	line.Heal()
	await()
	t.Logf("following them anew takes %v", time.Since(begun))
}
