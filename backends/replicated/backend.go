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
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

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

	// Logger takes what an operator should know: that the store does not
	// answer, and answers again, that a session was lost, that a record cannot
	// be read. There is no line per request, and no lock id. Nil is no log.
	Logger *zap.Logger
}

const (
	shardCount = 64 // a power of two

	// keptPerShard bounds the cache of idle locks' records.
	keptPerShard = 256

	// tidyEvery is how often idle locks' records are looked at; those that were
	// not used since the last time are dropped.
	tidyEvery = time.Minute

	// maxTTL is what a longer TTL is taken for: for ever.
	maxTTL = 100 * 365 * 24 * time.Hour

	// idleFor is how long a goroutine without a task is kept.
	idleFor = time.Second

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
	requests atomic.Uint64
	pace     pace
	health   health
	epoch    atomic.Uint64 // of the store, as the log knows

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	tasksMu sync.Mutex     // guards starting a task against the end of all
	tasks   sync.WaitGroup // all goroutines of the backend
	idle    chan func()    // to goroutines without a task

	draining chan struct{}
	drain    sync.Once
	closing  sync.Once
	closed   atomic.Bool
}

var _ lock.Backend = (*Backend)(nil)

// shard is a part of the locks that are active, or were a while ago.
type shard struct {
	mu    sync.Mutex
	locks map[string]*committer
}

// New returns a backend that keeps locks in the store, and owns the store from
// now on. It does not wait for the store. Close it when done.
func New(store Store, opts Options) *Backend {
	b := &Backend{store: store, seed: maphash.MakeSeed(), draining: make(chan struct{}), idle: make(chan func())}
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

// start runs a task in a goroutine, unless the backend is closed. One that has
// just ended a task takes it, if there is one: its stack has grown already, and
// growing it takes longer than all that a committer does for a swap.
func (b *Backend) start(task func()) bool {
	select {
	case b.idle <- task:
		return true
	default:
	}
	b.tasksMu.Lock()
	defer b.tasksMu.Unlock()
	if b.ctx.Err() != nil {
		return false
	}
	b.tasks.Go(func() {
		task()
		b.takeTasks()
	})
	return true
}

// takeTasks runs tasks in an idle goroutine, until there is none for a while.
func (b *Backend) takeTasks() {
	timer := time.NewTimer(idleFor)
	defer timer.Stop()
	for {
		select {
		case task := <-b.idle:
			task()
			timer.Reset(idleFor)
		case <-timer.C:
			return
		case <-b.ctx.Done():
			return
		}
	}
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

// use returns the committer of a lock for one operation, after which unuse is
// to be called.
func (b *Backend) use(key lock.Key) *committer {
	name := key.Name()
	sh := &b.shards[maphash.String(b.seed, name)%shardCount]
	sh.mu.Lock()
	c := sh.locks[name]
	if c == nil {
		if len(sh.locks) >= keptPerShard {
			sh.dropIdle(false)
		}
		c = b.newCommitter(sh, key)
		sh.locks[name] = c
	}
	c.users++
	c.parked = false
	sh.mu.Unlock()
	return c
}

func (c *committer) unuse() {
	c.shard.mu.Lock()
	c.users--
	c.shard.mu.Unlock()
}

func (b *Backend) newCommitter(sh *shard, key lock.Key) *committer {
	stored, name := storeKey(key)
	c := &committer{b: b, shard: sh, key: stored, core: newCore(key.Max(), name, b.store.Linearizable())}
	c.core.key = stored
	c.nudge = make(chan struct{}, 1)
	c.epoch = b.store.Epoch()
	if c.session = b.gateways.current(); c.session != nil {
		c.core.session = c.session.ID()
	}
	return c
}

// storeKey returns the key of a lock in the store, and the name that the record
// must have if the key does not tell it. Names begin with a digit, so hashes
// meet none.
func storeKey(key lock.Key) (stored, name string) {
	name = key.Name()
	if len(name) <= MaxKeyLength {
		return name, ""
	}
	sum := sha256.Sum256([]byte(name))
	return "#" + hex.EncodeToString(sum[:]), name
}

// eachCommitter calls f with the committers of all locks that are active.
func (b *Backend) eachCommitter(f func(*committer)) {
	for i := range b.shards {
		sh := &b.shards[i]
		sh.mu.Lock()
		list := make([]*committer, 0, len(sh.locks))
		for _, c := range sh.locks {
			list = append(list, c)
		}
		sh.mu.Unlock()
		for _, c := range list {
			f(c)
		}
	}
}

// tidy drops the records of locks that were idle for a while. It is the
// backend's goroutine, until Close.
func (b *Backend) tidy() {
	ticker := time.NewTicker(tidyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-b.ctx.Done():
			return
		}
		for i := range b.shards {
			b.shards[i].mu.Lock()
			b.shards[i].dropIdle(true)
			b.shards[i].mu.Unlock()
		}
	}
}

// dropIdle drops committers that nothing uses: all that were idle the last time
// already if aged is set, else any, some of them. sh.mu is held.
func (sh *shard) dropIdle(aged bool) {
	dropped := 0
	for name, c := range sh.locks {
		if c.users > 0 || !c.mu.TryLock() {
			continue
		}
		idle := c.core.idle() && !c.running && c.unfollow == nil && len(c.late) == 0
		c.mu.Unlock()
		switch {
		case !idle:
		case aged && !c.parked:
			c.parked = true
		default:
			delete(sh.locks, name)
			if dropped++; !aged && dropped >= keptPerShard/8 {
				return
			}
		}
	}
}

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
	r := &request{kind: k, holder: holder, id: b.requests.Add(1), delivered: make(chan struct{})}
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
