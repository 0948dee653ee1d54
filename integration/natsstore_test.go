package integration_test

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/nats"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/storetest"
	"github.com/lockgateway/lockgateway/integration/natstest"
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

// natsStore is NATS's store with words to test it.
type natsStore struct {
	*nats.Store
	words
}

func natsOptions(servers ...string) nats.Options {
	return nats.Options{
		Connection:     nats.Connection{Servers: servers, DialTimeout: 5 * time.Second},
		Name:           natsBucket,
		RequestTimeout: 5 * time.Second,
		SessionTTL:     10 * time.Second, // more than a slow minute holds a renewal up
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
	return natsStore{opened, newWords(t, opened)}
}

// openNATSSession opens a store and a session. Both end with the test.
func openNATSSession(t *testing.T, o nats.Options) natsStore {
	t.Helper()
	s := openNATS(t, o)
	t.Cleanup(func() { _ = s.Close() })
	session, err := s.OpenSession(s.ctx, "")
	s.must(err)
	s.session = session
	return s
}
