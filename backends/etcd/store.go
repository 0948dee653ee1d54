// Package etcd keeps locks in an etcd cluster. It is a [replicated.Store]:
// records change in transactions that compare revisions, sessions and expiring
// keys are leases, and changes are heard of through watches. Its module is
// http.lock_gateway.backends.etcd.
package etcd

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// Options say which cluster to use, and how.
type Options struct {
	Connection

	// Prefix is what the names of all keys begin with. A slash follows it.
	Prefix string

	// RequestTimeout is how long a request may take that the store makes on
	// its own account.
	RequestTimeout time.Duration

	// SessionTTL is how long a session outlives its gateway. The cluster knows
	// whole seconds only, and may have a minimum.
	SessionTTL time.Duration

	// ForgetAfter is how long an idle record is kept at least.
	ForgetAfter time.Duration

	// Logger is told what operators should know.
	Logger *zap.Logger
}

// Store is a [replicated.Store] over an etcd cluster.
type Store struct {
	keys    keyspace
	options atomic.Pointer[Options]

	connection atomic.Pointer[connection]
	history    history
	idle       idleLeases
	feed       feed
	renewals   renewals
	discards   chan uint64

	startDiscarding sync.Once
	checking        atomic.Bool  // the versions of the members
	warned          atomic.Bool  // that a member is old
	sessionTTL      atomic.Int64 // the latest that was granted; 0: none

	// ctx ends with Close, and with it all that the store runs.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // guards closed, and running against a Wait that has begun
	closed  bool
	running sync.WaitGroup
}

// Open makes a store. It does not wait for the cluster: as long as there is
// none, calls fail when their context is done. Its error is that of a file.
func Open(o Options) (*Store, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Store{
		keys:     newKeyspace(o.Prefix),
		discards: make(chan uint64, maxDiscards),
		ctx:      ctx,
		cancel:   cancel,
	}
	s.idle.turn = make(chan struct{}, 1)
	s.renewals.turn = make(chan struct{}, 1)
	s.feed.init(s)
	c, err := connect(ctx, o.Connection)
	if err != nil {
		cancel()
		return nil, err
	}
	s.options.Store(&o)
	s.connection.Store(c)
	return s, nil
}

// Configure applies other settings; the prefix must be the same. If they are
// about the connection, another one is made: what is under way on the one before
// may take another request timeout.
func (s *Store) Configure(o Options) {
	before := s.options.Swap(&o)
	if reflect.DeepEqual(before.Connection, o.Connection) {
		return
	}
	c, err := connect(s.ctx, o.Connection)
	if err != nil {
		o.Logger.Error("the new settings of the connection to etcd cannot be used; those before stay in force", zap.Error(err))
		return
	}
	old := s.connection.Swap(c)
	grace := max(before.RequestTimeout, o.RequestTimeout)
	if !s.run(func() {
		sleep(s.ctx, grace)
		old.close()
	}) {
		old.close()
		c.close()
		return
	}
	// Both notice when the old connection is closed; but that is late.
	s.feed.reopen()
	s.renewals.end(s.renewals.current())
}

// Linearizable is true: reads go through the cluster's majority.
func (s *Store) Linearizable() bool { return true }

// Epoch changes when an answer shows that the cluster is another one, or was
// restored from a backup.
func (s *Store) Epoch() uint64 { return s.history.now() }

// SessionTTL is the time that etcd granted to the latest session.
func (s *Store) SessionTTL() time.Duration {
	if granted := s.sessionTTL.Load(); granted > 0 {
		return time.Duration(granted)
	}
	return s.options.Load().SessionTTL
}

// Close ends all that the store runs, and its connections. Sessions that were
// not ended run out.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
	s.feed.close()
	s.connection.Load().close()
	return nil
}

// run runs what must end soon after s.ctx is done, and reports false if the
// store is closed. Close waits for it.
func (s *Store) run(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Go(f)
	return true
}

func (s *Store) requestTimeout() time.Duration { return s.options.Load().RequestTimeout }

// sleep reports false if ctx was done before the time was up.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

var _ replicated.Store = (*Store)(nil)
