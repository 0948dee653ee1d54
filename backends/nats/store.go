// Package nats keeps locks in a key-value bucket of NATS JetStream. It is a
// [replicated.Store]: records change by publications that name the last sequence of
// their key, sessions and expiring keys are messages with a time to live, and
// changes are heard of where the stream publishes them again. Its module is
// http.lock_gateway.backends.nats.
//
// What it cannot do: reads may be old ([Store.Linearizable] is false), since a
// leader that was deposed may not know; creates cannot be fenced (see
// session.Fence); and what is acknowledged may be lost when servers lose power,
// unless they run with sync_interval: always, which no client can see.
package nats

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// Options say which bucket to use, and how.
type Options struct {
	Connection

	// Domain is the domain of JetStream that the bucket is in, if it is not that
	// of the servers that we connect to.
	Domain string

	// Name is the bucket's.
	Name string

	// Bucket is how to make it.
	Bucket

	// RequestTimeout is how long a request may take that the store makes on its
	// own account.
	RequestTimeout time.Duration

	// SessionTTL is how long a session outlives its gateway.
	SessionTTL time.Duration

	// ForgetAfter is how long an idle record is kept at least.
	ForgetAfter time.Duration

	// Logger is told what operators should know.
	Logger *zap.Logger
}

// Store is a [replicated.Store] over a bucket.
type Store struct {
	keys    keyspace
	options atomic.Pointer[Options]

	connection atomic.Pointer[connection]
	history    history
	oneServer  atomic.Bool // keeps the stream, as far as is known
	clock      clock
	feed       feed
	discards   chan uint64
	warned     sync.Map // what the log was told

	startDiscarding sync.Once

	// ctx ends with Close, and with it all that the store runs.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // guards closed, and running against a Wait that has begun
	closed  bool
	running sync.WaitGroup
}

// Open makes a store. It does not wait for the servers: as long as there are none,
// calls fail when their context is done. Its error is that of a file.
func Open(o Options) (*Store, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Store{
		keys:     newKeyspace(o.Domain, o.Name),
		discards: make(chan uint64, maxDiscards),
		ctx:      ctx,
		cancel:   cancel,
	}
	s.options.Store(&o)
	s.feed.init(s)
	c, err := s.connect(o.Connection)
	if err != nil {
		cancel()
		return nil, err
	}
	s.connection.Store(c)
	s.run(s.feed.deliver)
	s.run(s.feed.subscribe)
	s.run(s.sweepAll)
	return s, nil
}

// Configure applies other settings; bucket and domain must be the same. If they
// are about the connection, another one is made: what is under way on the one
// before may take another request timeout.
func (s *Store) Configure(o Options) {
	before := s.options.Swap(&o)
	if reflect.DeepEqual(before.Connection, o.Connection) {
		return
	}
	c, err := s.connect(o.Connection)
	if err != nil {
		o.Logger.Error("the new settings of the connection to NATS cannot be used; those before stay in force", zap.Error(err))
		return
	}
	old := s.connection.Swap(c)
	s.feed.attached() // if c was there first
	grace := max(before.RequestTimeout, o.RequestTimeout)
	if !s.run(func() {
		sleep(s.ctx, grace)
		old.close()
	}) {
		old.close()
		c.close()
	}
}

// Linearizable is false: a leader that was deposed may not know it, and show what
// was before.
func (s *Store) Linearizable() bool { return false }

// Epoch changes when an answer shows that the bucket was made anew, or has lost
// what was written last.
func (s *Store) Epoch() uint64 { return s.history.now() }

// SessionTTL is the time of sessions that are opened now.
func (s *Store) SessionTTL() time.Duration { return s.options.Load().SessionTTL }

// Close ends all that the store runs, and its connection. Sessions that were not
// ended run out.
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

// link returns what to send with. Its error is unsent.
func (s *Store) link(ctx context.Context) (*connection, *link, error) {
	if s.ctx.Err() != nil {
		return nil, nil, &unsentError{errClosed}
	}
	c := s.connection.Load()
	l, err := c.get(ctx)
	if err != nil {
		return nil, nil, &unsentError{err}
	}
	return c, l, nil
}

// hears is told of errors that belong to no call. Their text may name a lock.
func (s *Store) hears(l *link, sub *nats.Subscription, err error) {
	switch subject, publishing := forbidden(err); {
	case publishing:
		l.forbids(subject)
	case errors.Is(err, nats.ErrPermissionViolation):
		s.warn("there is no permission to subscribe, so that waiters are woken after a second or two only; give the user that",
			zap.String("subject", s.keys.news+">"))
	case errors.Is(err, nats.ErrSlowConsumer) && sub != nil:
		s.feed.missed(sub.Subject)
		s.warnAgain("this gateway had fallen behind: it could not take all news of locks in time, and reads them instead")
	}
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

func (s *Store) logger() *zap.Logger { return s.options.Load().Logger }

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
