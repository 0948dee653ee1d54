package integration_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/process"
)

func TestEtcdSessionEndsWhileTheServerStandsStill(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{})
	s := openSession(t, storeOptions(cluster.Endpoints()...))
	server := cluster.Members()[0]
	server.Pause(t)
	begun := time.Now()
	select {
	case <-s.session.Done():
	case <-s.ctx.Done():
		t.Fatal("the session does not end")
	}
	if took := time.Since(begun); took > process.Soon/2 {
		t.Errorf("it took %v to give up a session of %v", took, s.SessionTTL())
	}
	server.Resume(t)
	process.Await(t, "the server says so, too", func() bool {
		ended, err := s.SessionEnded(s.ctx, s.session.ID())
		s.must(err)
		return ended
	})
	_, err := s.swapWithin(process.Soon, replicated.Swap{Key: "a", Value: []byte("a")})
	if !errors.Is(err, replicated.ErrNotApplied) || !errors.Is(err, replicated.ErrSessionEnded) {
		t.Errorf("creating under the session gave the error %v", err)
	}
	if err := s.session.Fence(s.ctx); !errors.Is(err, replicated.ErrSessionEnded) {
		t.Errorf("fencing the session gave the error %v", err)
	}
}

func TestEtcdSessionNoticesThatItsLeaseIsRevoked(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{})
	s, other := openSession(t, storeOptions(cluster.Endpoints()...)), openSession(t, storeOptions(cluster.Endpoints()...))
	ended := make(chan replicated.SessionID, 10)
	other.FollowSessions(s.ctx, func(id replicated.SessionID) { ended <- id })
	other.next(other.follow("a")) // on the same stream, so the other one is open, too
	if _, err := cluster.Client().Revoke(s.ctx, clientv3.LeaseID(s.session.ID())); err != nil {
		t.Fatal(err)
	}
	select {
	case id := <-ended:
		if id != s.session.ID() {
			t.Errorf("the end of %x was announced; want %x", id, s.session.ID())
		}
	case <-s.ctx.Done():
		t.Fatal("the end is not announced")
	}
	select {
	case <-s.session.Done():
	case <-s.ctx.Done():
		t.Fatal("the session does not notice")
	}
}

// A Fence whose answer was lost may be applied late.
func TestEtcdSessionLearnsOfItsLateFence(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{})
	s := openSession(t, storeOptions(cluster.Endpoints()...))
	key := fmt.Sprintf("/lockgateway/sessions/%016x", uint64(s.session.ID()))
	if _, err := cluster.Client().Put(s.ctx, key, "", clientv3.WithLease(clientv3.LeaseID(s.session.ID()))); err != nil {
		t.Fatal(err)
	}
	_, err := s.swapWithin(process.Soon, replicated.Swap{Key: "a", Value: []byte("a")})
	s.refused(err, "fenced")
	if errors.Is(err, replicated.ErrSessionEnded) {
		t.Errorf("the error is %v; the session lives", err)
	}
	s.create("a")
}

func TestEtcdExpiringKeyThatExpiredIsNotPut(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{})
	s := openSession(t, storeOptions(cluster.Endpoints()...))
	e := s.create("a")
	x, err := s.NewExpiring(s.ctx, time.Minute)
	s.must(err)
	s.must(s.Restart(s.ctx, x)) // before any swap has put it
	if _, err := cluster.Client().Revoke(s.ctx, clientv3.LeaseID(x.ID)); err != nil {
		t.Fatal(err)
	}
	for _, idle := range []bool{false, true} {
		_, err = s.swapWithin(process.Soon, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b"), Expiring: []replicated.Expiring{x}, Idle: idle})
		s.refused(err, "expired")
		if !errors.Is(err, replicated.ErrExpired) {
			t.Errorf("the error is %v", err)
		}
	}
	if err := s.Restart(s.ctx, x); !errors.Is(err, replicated.ErrExpired) {
		t.Errorf("restarting it gave the error %v", err)
	}
	if left, err := s.Remaining(s.ctx, []uint64{x.ID}); err != nil || left[0] != 0 {
		t.Errorf("%v left, error %v", left, err)
	}
}

func TestEtcdStoreForgetsIdleRecords(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{})
	s := openSession(t, storeOptions(cluster.Endpoints()...))
	const records = 1500
	revisions := make([]uint64, records)
	var group errgroup.Group
	group.SetLimit(50)
	for i := range records {
		group.Go(func() error {
			res, err := s.Swap(s.ctx, replicated.Swap{Key: fmt.Sprint(i), Value: []byte("a"), Session: s.session, Idle: true})
			revisions[i] = res.Entry.Revision
			return err
		})
	}
	s.must(group.Wait())
	leases := make(map[int64]int)
	all, err := cluster.Client().Get(s.ctx, "/lockgateway/locks/", clientv3.WithPrefix())
	s.must(err)
	for _, kv := range all.Kvs {
		leases[kv.Lease]++
	}
	if len(all.Kvs) != records || len(leases) != 2 {
		t.Errorf("%d records have the leases %v; want %d that have two", len(all.Kvs), leases, records)
	}
	for lease, keys := range leases {
		if lease == 0 || keys > 1000 {
			t.Errorf("%d records have the lease %x", keys, lease)
		}
		info, err := cluster.Client().TimeToLive(s.ctx, clientv3.LeaseID(lease))
		s.must(err)
		if info.GrantedTTL < 3600 {
			t.Errorf("idle records are kept for %d seconds", info.GrantedTTL)
		}
	}

	s.apply(replicated.Swap{Key: "0", Expect: revisions[0], Value: []byte("b")})
	news := s.follow("1")
	s.next(news)
	for lease := range leases {
		if _, err := cluster.Client().Revoke(s.ctx, clientv3.LeaseID(lease)); err != nil {
			t.Fatal(err)
		}
	}
	if e := s.next(news); !e.Missed {
		t.Errorf("that a record was forgotten was told as %+v", e)
	}
	if e := s.get("0"); string(e.Value) != "b" {
		t.Error("a record was forgotten that was idle once")
	}
	if e := s.get("1"); e.Revision != 0 {
		t.Error("an idle record was not forgotten")
	}
	// The lease that the store means to use is gone.
	s.apply(replicated.Swap{Key: "1", Value: []byte("c"), Idle: true})
}
