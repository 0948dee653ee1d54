// Package replicated keeps locks in a store that several gateways share: any
// store with compare-and-swap, sessions and keys that expire (see Store).
//
// There is one record per lock, and everything that can happen to a lock is a
// pure transition of it (record.go, transitions.go). A gateway has a committer
// per active lock, which applies all that is asked of the lock to the record
// that it knows, and swaps once (core.go decides, plan.go and grants.go make the batch,
// settle.go finds out what became of it, committer.go does the input and
// output). docs/architecture.md has the reasons and a proof sketch.
package replicated

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/lock"
)

// DefaultRequestTimeout is the time that a request has if
// Options.RequestTimeout is not set.
const DefaultRequestTimeout = 5 * time.Second

// Options are the settings of a Backend. The zero value is good.
type Options struct {
	// RequestTimeout is how long a request may take beyond its wait. If the
	// store has not answered by then, the caller gets lock.ErrUnavailable if the
	// request certainly was not carried out, else lock.ErrOutcomeUnknown. Zero
	// means DefaultRequestTimeout.
	RequestTimeout time.Duration

	// Name is the backend's in metrics, and Meter where these go. Nil is nowhere.
	// Both are taken by New only.
	Name  string
	Meter metric.Meter

	// Logger takes what an operator should know: that the store does not
	// answer, and answers again, that a session was lost, that a record cannot
	// be read. There is no line per request, and no lock id. Nil is no log.
	Logger *zap.Logger
}

const (
	// maxTTL is what a longer TTL is taken for: for ever.
	maxTTL = 100 * 365 * 24 * time.Hour

	// closeTimeout bounds how long Close waits for give-backs, and then for the
	// store.
	closeTimeout = 2 * time.Second
)

// Backend keeps locks in a store. Make one with New.
type Backend struct {
	store Store
	seed  maphash.Seed
	log   atomic.Pointer[zap.Logger]

	shards   [shardCount]shard
	gateways *gateways
	timeout  atomic.Int64 // a time.Duration
	batches  atomic.Uint64
	followed atomic.Int64 // records
	requests atomic.Uint64
	pace     pace
	health   health
	meters   *meters
	epoch    atomic.Uint64 // of the store, as the log knows

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	tasksMu sync.Mutex     // guards starting a task against the end of all
	tasks   sync.WaitGroup // all goroutines of the backend
	idle    chan func()    // to goroutines without a task

	timers sync.Pool // of *time.Timer, stopped; see timer

	draining chan struct{}
	drain    sync.Once
	closing  sync.Once
	closed   atomic.Bool
}

var _ lock.Backend = (*Backend)(nil)

// New returns a backend that keeps locks in the store, and owns the store from
// now on. It does not wait for the store. Close it when done.
func New(store Store, opts Options) *Backend {
	b := &Backend{store: store, meters: newMeters(opts.Name, opts.Meter), seed: maphash.MakeSeed(), draining: make(chan struct{}), idle: make(chan func())}
	b.Configure(opts)
	b.epoch.Store(store.Epoch())
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.gateways = newGateways(b)
	for i := range b.shards {
		b.shards[i].locks = make(map[string]*committer)
	}
	b.start(b.gateways.run)
	b.start(b.tidy)
	return b
}

// Configure replaces the settings.
func (b *Backend) Configure(opts Options) {
	if opts.Logger == nil {
		opts.Logger = zap.NewNop()
	}
	b.log.Store(opts.Logger)
	if opts.RequestTimeout <= 0 {
		opts.RequestTimeout = DefaultRequestTimeout
	}
	b.timeout.Store(int64(opts.RequestTimeout))
}

func (b *Backend) logger() *zap.Logger { return b.log.Load() }

func (b *Backend) requestTimeout() time.Duration { return time.Duration(b.timeout.Load()) }

// Acquire implements lock.Backend.
func (b *Backend) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	if b.closed.Load() {
		return lock.AcquireResult{}, lock.ErrClosing
	}
	r := b.newRequest(acquireRequest, req.Holder)
	r.ttl, r.maxWaiters, r.try = min(req.TTL, maxTTL), req.MaxWaiters, req.Wait <= 0
	if req.Holder == "" {
		r.ttl = 0
	}
	drained := false
	select {
	case <-b.draining:
		drained = !r.try
		r.try = true
	default:
	}
	c := b.use(req.Key)
	defer c.unuse()
	res, err := b.await(ctx, c, r, req.Wait)
	if drained && err == nil && !res.Acquired {
		err = lock.ErrClosing
	}
	return res, err
}

// GiveBack implements lock.Backend. The slot is given back also when the store
// does not answer in time, as soon as it does.
func (b *Backend) GiveBack(ctx context.Context, req lock.AcquireRequest, res lock.AcquireResult) error {
	r := b.newRequest(giveBackRequest, req.Holder)
	r.era, r.token = res.Mark, res.Token
	_, err := b.do(ctx, req.Key, r)
	return err
}

// Release implements lock.Backend.
func (b *Backend) Release(ctx context.Context, key lock.Key, holder string) (bool, error) {
	a, err := b.do(ctx, key, b.newRequest(releaseRequest, holder))
	return a.released, err
}

// Reset implements lock.Backend.
func (b *Backend) Reset(ctx context.Context, key lock.Key) error {
	_, err := b.do(ctx, key, b.newRequest(resetRequest, ""))
	return err
}

// Value implements lock.Backend.
func (b *Backend) Value(ctx context.Context, key lock.Key, detail bool) (lock.Value, error) {
	a, err := b.do(ctx, key, b.newRequest(valueRequest, ""))
	if !detail {
		a.value.Waiting, a.value.Holders = 0, nil
	}
	return a.value, err
}

// Ready implements lock.Backend.
func (b *Backend) Ready() error {
	select {
	case <-b.draining:
		return lock.ErrClosing
	default:
	}
	if b.health.down.Load() {
		return errSilent
	}
	if b.gateways.current() == nil {
		return errNoSession
	}
	return nil
}

// Drain implements lock.Backend.
func (b *Backend) Drain() { b.drain.Do(func() { close(b.draining) }) }

// Close implements lock.Backend. Slots stay held; places in the queue go with
// the session.
func (b *Backend) Close() error {
	var err error
	b.closing.Do(func() {
		b.Drain()
		b.closed.Store(true)
		b.finishWork(closeTimeout)
		b.tasksMu.Lock()
		b.cancel()
		b.tasksMu.Unlock()
		b.tasks.Wait()
		b.eachCommitter((*committer).stop)
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		b.gateways.end(ctx)
		err = b.store.Close()
	})
	return err
}

// finishWork waits until the places of waiters and slots to be given back are
// out of the store, but not for long: what remains goes with the session, or
// is lost with this gateway's last word.
func (b *Backend) finishWork(atMost time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	b.eachCommitter(func(c *committer) {
		select {
		case <-c.atRest():
		case <-ctx.Done():
		}
	})
}

func (b *Backend) newRequest(k kind, holder string) *request {
	r := &request{kind: k, holder: holder, id: b.requests.Add(1), since: time.Now().UnixMilli(), delivered: make(chan struct{})}
	if holder != "" {
		r.hash = hashName(holder)
	}
	return r
}

func unavailable(cause error) error {
	if errors.Is(cause, lock.ErrUnavailable) {
		return cause
	}
	return fmt.Errorf("%w: %w", lock.ErrUnavailable, cause)
}
