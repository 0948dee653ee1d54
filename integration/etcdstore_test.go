package integration_test

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/etcd"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/storetest"
	"github.com/lockgateway/lockgateway/integration/etcdtest"
)

func TestEtcdStoreKeepsItsPromises(t *testing.T) {
	o := storeOptions(etcdtest.Start(t, etcdtest.Options{}).Endpoints()...)
	storetest.Run(t, func(t *testing.T) func() replicated.Store {
		return func() replicated.Store { return openStore(t, o).Store }
	}, storetest.Fences, storetest.AnnouncesSessions)
}

func TestEtcdStoresWithOtherPrefixesDoNotMeet(t *testing.T) {
	t.Parallel()
	o := storeOptions(etcdtest.Start(t, etcdtest.Options{}).Endpoints()...)
	one := openSession(t, o)
	one.create("a")
	for _, prefix := range []string{"/lockgateway2", "/lock", "", "/lockgateway/below"} {
		o.Prefix = prefix
		other := openSession(t, o)
		if e := other.get("a"); e.Revision != 0 {
			t.Errorf("with the prefix %q there is the record of another prefix", prefix)
		}
		other.create("a")
		if ended, err := other.SessionEnded(other.ctx, one.session.ID()); err != nil || !ended {
			t.Errorf("with the prefix %q there is the session of another: %v, error %v", prefix, ended, err)
		}
	}
}

// What a swap puts beyond what one transaction takes.
func TestEtcdStoreTakesManyExpiringKeysInOneSwap(t *testing.T) {
	t.Parallel()
	s := openSession(t, storeOptions(etcdtest.Start(t, etcdtest.Options{}).Endpoints()...))
	var keys []replicated.Expiring
	var ids []uint64
	for range 250 {
		x, err := s.NewExpiring(s.ctx, time.Minute)
		s.must(err)
		keys, ids = append(keys, x), append(ids, x.ID)
	}
	res, err := s.Swap(s.ctx, replicated.Swap{Key: "a", Value: []byte("a"), Session: s.session, Expiring: keys})
	s.must(err)
	if !res.Applied {
		t.Fatal("the swap was refused")
	}
	left, err := s.Remaining(s.ctx, ids)
	s.must(err)
	for i := range left {
		if left[i] <= 0 || left[i] > time.Minute+2*time.Second {
			t.Fatalf("key %d of %d has %v left", i, len(left), left[i])
		}
	}
}

// store is etcd's store with words to test it.
type store struct {
	*etcd.Store
	words
}

func storeOptions(endpoints ...string) etcd.Options {
	return etcd.Options{
		Connection: etcd.Connection{
			Endpoints:        endpoints,
			DialTimeout:      5 * time.Second,
			KeepAliveTime:    10 * time.Second,
			KeepAliveTimeout: 3 * time.Second,
		},
		Prefix:         "/lockgateway",
		RequestTimeout: 3 * time.Second,
		SessionTTL:     10 * time.Second, // more than a slow minute holds a renewal up
		ForgetAfter:    time.Hour,
		Logger:         zap.NewNop(),
	}
}

// openStore opens a store, which whoever called closes.
func openStore(t *testing.T, o etcd.Options) store {
	t.Helper()
	opened, err := etcd.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return store{opened, newWords(t, opened)}
}

// openSession opens a store and a session. Both end with the test.
func openSession(t *testing.T, o etcd.Options) store {
	t.Helper()
	s := openStore(t, o)
	t.Cleanup(func() { _ = s.Close() })
	session, err := s.OpenSession(s.ctx, "")
	s.must(err)
	s.session = session
	return s
}
