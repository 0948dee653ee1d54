package integration_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/etcd"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/storetest"
	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/process"
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

// store is a store with words to test it.
type store struct {
	*etcd.Store
	t       *testing.T
	ctx     context.Context
	session replicated.Session
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
		SessionTTL:     3 * time.Second,
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
	ctx, cancel := context.WithTimeout(context.Background(), process.Soon)
	t.Cleanup(cancel)
	return store{Store: opened, t: t, ctx: ctx}
}

// openSession opens a store and a session. Both end with the test.
func openSession(t *testing.T, o etcd.Options) store {
	t.Helper()
	s := openStore(t, o)
	t.Cleanup(func() { _ = s.Close() })
	session, err := s.OpenSession(s.ctx)
	s.must(err)
	s.session = session
	return s
}

func (s store) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s store) create(key string) replicated.Entry {
	s.t.Helper()
	return s.apply(replicated.Swap{Key: key, Value: []byte("created")})
}

func (s store) apply(w replicated.Swap) replicated.Entry {
	s.t.Helper()
	w.Session = s.session
	res, err := s.Swap(s.ctx, w)
	s.must(err)
	if !res.Applied {
		s.t.Fatalf("a swap was refused; the record has the revision %d", res.Entry.Revision)
	}
	return res.Entry
}

func (s store) get(key string) replicated.Entry {
	s.t.Helper()
	e, err := s.Get(s.ctx, key)
	s.must(err)
	return e
}

// swapWithin tries a swap for some time.
func (s store) swapWithin(d time.Duration, w replicated.Swap) (replicated.SwapResult, error) {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	w.Session = s.session
	return s.Swap(ctx, w)
}

// refused checks that a swap certainly did not happen, and that the error tells why.
func (s store) refused(err error, why string) {
	s.t.Helper()
	if !errors.Is(err, replicated.ErrNotApplied) || !strings.Contains(err.Error(), why) {
		s.t.Errorf("the error is %v; want one that says that the swap was not applied, and %q", err, why)
	}
}

// inDoubt checks that an error leaves open what became of a swap.
func (s store) inDoubt(err error) {
	s.t.Helper()
	if err == nil || errors.Is(err, replicated.ErrNotApplied) {
		s.t.Errorf("the error is %v; want one that leaves the outcome open", err)
	}
}

// follow follows a record, and returns the first hundred of its news that are
// not fetched.
func (s store) follow(key string) <-chan replicated.Event {
	news := make(chan replicated.Event, 100)
	s.Follow(s.ctx, key, func(e replicated.Event) {
		select {
		case news <- e:
		default:
		}
	})
	return news
}

// next returns the next event.
func (s store) next(news <-chan replicated.Event) replicated.Event {
	s.t.Helper()
	select {
	case e := <-news:
		return e
	case <-s.ctx.Done():
		s.t.Fatal("Follow tells nothing")
		return replicated.Event{}
	}
}
