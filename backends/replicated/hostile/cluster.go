// Package hostile is a replicated.Store in memory that does to its gateways
// what package replicated says that a store may do: it answers late or not at
// all, applies what it has called failed, reads old records, loses news and
// ends sessions under way. A gateway that keeps locks safe on it does not rest
// on anything that is not promised.
//
//	cluster := hostile.New(t, hostile.Config{Faults: hostile.Storm()})
//	defer cluster.Close()
//	a, b := cluster.Open(), cluster.Open() // two gateways' stores
//
// All faults come from one seed, which is logged. The faults of a gateway
// depend on the seed and its own calls only, so that a seed brings back a
// failure as far as the scheduling of goroutines does. Time is that of package
// time alone: a cluster made inside a bubble of testing/synctest lives in that
// bubble's time.
//
// What store.go forbids its callers, such as a key that is too long, panics.
package hostile

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// Kind is what a store can do.
type Kind int

const (
	// Strict stores are like etcd: reads are linearizable, sessions fence
	// creates, the ends of sessions are announced, and a swap puts its expiring
	// keys: one that has expired fails the swap.
	Strict Kind = iota

	// Loose stores are like NATS: none of these. Reads may be old, Fence does
	// nothing, and expiring keys are there before the swap that names them.
	Loose
)

// Config is what a cluster is made with. Its zero value is a strict cluster
// without faults.
type Config struct {
	Kind   Kind
	Faults Faults

	// Seed is where the faults come from; 0: a random one.
	Seed uint64
}

// Cluster is the data that any number of gateways share, and the faults.
type Cluster struct {
	kind    Kind
	seed    uint64
	running sync.WaitGroup // the callbacks of alarms

	mu       sync.Mutex // guards all below, and the fields of stores, sessions and streams that say so
	closed   bool
	faults   Faults
	strikes  int // since the faults were set
	epoch    uint64
	revision uint64
	lastID   uint64 // of expiring keys
	records  map[string]*record
	history  map[string][]replicated.Entry
	sessions map[replicated.SessionID]*session
	expiring map[uint64]*expiringKey
	stores   []*store
	streams  map[*stream]bool
	holds    []*Held
	alarms   map[*alarm]bool
	counts   Counts
}

// New makes a cluster and logs its seed. Close ends it.
func New(log interface{ Logf(string, ...any) }, config Config) *Cluster {
	for config.Seed == 0 {
		config.Seed = rand.Uint64() //nolint:gosec // Not a secret.
	}
	log.Logf("hostile.Config{Seed: %#x}", config.Seed)
	return &Cluster{
		kind:     config.Kind,
		seed:     config.Seed,
		faults:   config.Faults,
		epoch:    config.Seed,
		records:  make(map[string]*record),
		history:  make(map[string][]replicated.Entry),
		sessions: make(map[replicated.SessionID]*session),
		expiring: make(map[uint64]*expiringKey),
		streams:  make(map[*stream]bool),
		alarms:   make(map[*alarm]bool),
	}
}

// Open opens one more gateway's store.
func (c *Cluster) Open() replicated.Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &store{
		cluster: c,
		closed:  make(chan struct{}),
		dice:    rand.New(rand.NewPCG(c.seed, uint64(len(c.stores)))), //nolint:gosec // Not a secret.
		epoch:   c.epoch,
	}
	c.stores = append(c.stores, s)
	return s
}

// Close closes the stores that are still open and ends everything that was
// still to happen.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.closed = true
	for a := range c.alarms {
		c.stop(a)
	}
	stores := c.stores
	c.mu.Unlock()
	for _, s := range stores {
		_ = s.Close()
	}
	c.running.Wait()
}

// alarm is something that is to happen to the cluster.
type alarm struct{ timer *time.Timer }

// after calls f once d has passed, in a goroutine of its own and with c.mu
// held. Close waits for it. The caller holds c.mu.
func (c *Cluster) after(d time.Duration, f func()) *alarm {
	if c.closed {
		return nil
	}
	a := &alarm{}
	c.alarms[a] = true
	c.running.Add(1)
	a.timer = time.AfterFunc(d, func() {
		defer c.running.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.alarms[a] {
			delete(c.alarms, a)
			f()
		}
	})
	return a
}

// stop takes an alarm back; it may be nil, or have happened. The caller holds
// c.mu.
func (c *Cluster) stop(a *alarm) {
	if !c.alarms[a] {
		return
	}
	delete(c.alarms, a)
	if a.timer.Stop() {
		c.running.Done()
	}
}
