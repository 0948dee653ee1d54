package integration_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/lockgateway/lockgateway/lock"
)

// roundRobin is several gateways' backends behind one face: each request goes
// to the next of them, as a load balancer does it.
type roundRobin struct {
	backends []lock.Backend
	turn     atomic.Uint64

	mu sync.Mutex
	// answered says which backends gave an answer, for a gateway gives back what
	// it answered itself. Several are taken in turn.
	answered map[grant][]lock.Backend
}

// grant is what an answer can be recognised by.
type grant struct {
	key    lock.Key
	holder string
	result lock.AcquireResult
}

func newRoundRobin(backends ...lock.Backend) *roundRobin {
	return &roundRobin{backends: backends, answered: make(map[grant][]lock.Backend)}
}

func (r *roundRobin) next() lock.Backend {
	return r.backends[r.turn.Add(1)%uint64(len(r.backends))]
}

func (r *roundRobin) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	b := r.next()
	res, err := b.Acquire(ctx, req)
	if err == nil && res.Acquired {
		g := grant{req.Key, req.Holder, res}
		r.mu.Lock()
		r.answered[g] = append(r.answered[g], b)
		r.mu.Unlock()
	}
	return res, err
}

func (r *roundRobin) GiveBack(ctx context.Context, req lock.AcquireRequest, res lock.AcquireResult) error {
	g := grant{req.Key, req.Holder, res}
	r.mu.Lock()
	by := r.answered[g]
	if len(by) == 0 {
		r.mu.Unlock()
		return errors.New("an answer is given back that nobody gave")
	}
	r.answered[g] = append(by[1:], by[0])
	r.mu.Unlock()
	return by[0].GiveBack(ctx, req, res)
}

func (r *roundRobin) Ready() (err error) {
	for _, b := range r.backends {
		err = errors.Join(err, b.Ready())
	}
	return err
}

func (r *roundRobin) Release(ctx context.Context, key lock.Key, holder string) (bool, error) {
	return r.next().Release(ctx, key, holder)
}

func (r *roundRobin) Value(ctx context.Context, key lock.Key, detail bool) (lock.Value, error) {
	return r.next().Value(ctx, key, detail)
}

func (r *roundRobin) Reset(ctx context.Context, key lock.Key) error {
	return r.next().Reset(ctx, key)
}

func (r *roundRobin) Drain() {
	for _, b := range r.backends {
		b.Drain()
	}
}

func (r *roundRobin) Close() error {
	var errs []error
	for _, b := range r.backends {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

var _ lock.Backend = (*roundRobin)(nil)
