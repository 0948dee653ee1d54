package integration_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/nats"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/storetest"
	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
)

func TestNATSStoreKeepsItsPromises(t *testing.T) {
	o := natsOptions(natstest.Start(t, natstest.Options{}).URLs()...)
	storetest.Run(t, func(t *testing.T) func() replicated.Store {
		return func() replicated.Store { return openNATS(t, o).Store }
	})
}

func TestNATSStoreOverThreeServersKeepsItsPromises(t *testing.T) {
	o := natsOptions(natstest.StartCluster(t, 3, natstest.Options{}).URLs()...)
	storetest.Run(t, func(t *testing.T) func() replicated.Store {
		return func() replicated.Store { return openNATS(t, o).Store }
	})
}

const (
	natsBucket = "lockgateway"
	natsStream = "KV_" + natsBucket
)

// natsStore is a store with words to test it.
type natsStore struct {
	*nats.Store
	t       *testing.T
	ctx     context.Context
	session replicated.Session
}

func natsOptions(servers ...string) nats.Options {
	return nats.Options{
		Connection:     nats.Connection{Servers: servers, DialTimeout: 5 * time.Second},
		Name:           natsBucket,
		RequestTimeout: 5 * time.Second,
		SessionTTL:     3 * time.Second,
		ForgetAfter:    time.Hour,
		Logger:         zap.NewNop(),
	}
}

// openNATS opens a store, which whoever called closes.
func openNATS(t *testing.T, o nats.Options) natsStore {
	t.Helper()
	opened, err := nats.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), process.Soon)
	t.Cleanup(cancel)
	return natsStore{Store: opened, t: t, ctx: ctx}
}

// openNATSSession opens a store and a session. Both end with the test.
func openNATSSession(t *testing.T, o nats.Options) natsStore {
	t.Helper()
	s := openNATS(t, o)
	t.Cleanup(func() { _ = s.Close() })
	session, err := s.OpenSession(s.ctx)
	s.must(err)
	s.session = session
	return s
}

func (s natsStore) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s natsStore) create(key string) replicated.Entry {
	s.t.Helper()
	return s.apply(replicated.Swap{Key: key, Value: []byte("created")})
}

func (s natsStore) apply(w replicated.Swap) replicated.Entry {
	s.t.Helper()
	w.Session = s.session
	res, err := s.Swap(s.ctx, w)
	s.must(err)
	if !res.Applied {
		s.t.Fatalf("a swap was refused; the record has the revision %d", res.Entry.Revision)
	}
	return res.Entry
}

func (s natsStore) get(key string) replicated.Entry {
	s.t.Helper()
	e, err := s.Get(s.ctx, key)
	s.must(err)
	return e
}

// swapWithin tries a swap for some time.
func (s natsStore) swapWithin(d time.Duration, w replicated.Swap) (replicated.SwapResult, error) {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	w.Session = s.session
	return s.Swap(ctx, w)
}

// refused checks that a swap certainly did not happen, and that the error tells why.
func (s natsStore) refused(err error, why string) {
	s.t.Helper()
	if !errors.Is(err, replicated.ErrNotApplied) || !strings.Contains(err.Error(), why) {
		s.t.Errorf("the error is %v; want one that says that the swap was not applied, and %q", err, why)
	}
}

// inDoubt checks that an error leaves open what became of a swap.
func (s natsStore) inDoubt(err error) {
	s.t.Helper()
	if err == nil || errors.Is(err, replicated.ErrNotApplied) {
		s.t.Errorf("the error is %v; want one that leaves the outcome open", err)
	}
}

// follow follows a record, and returns the first hundred of its news that are
// not fetched.
func (s natsStore) follow(key string) <-chan replicated.Event {
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
func (s natsStore) next(news <-chan replicated.Event) replicated.Event {
	s.t.Helper()
	select {
	case e := <-news:
		return e
	case <-s.ctx.Done():
		s.t.Fatal("Follow tells nothing")
		return replicated.Event{}
	}
}
