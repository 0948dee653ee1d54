package replicated_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
	"github.com/lockgateway/lockgateway/lock"
	"github.com/lockgateway/lockgateway/lock/locktest"
)

func TestConformance(t *testing.T) {
	for name, kind := range map[string]hostile.Kind{"Strict": hostile.Strict, "Loose": hostile.Loose} {
		for gatewaysName, gateways := range map[string]int{"OneGateway": 1, "ThreeGateways": 3} {
			t.Run(name+gatewaysName, func(t *testing.T) {
				t.Parallel()
				locktest.Run(t, func(t *testing.T) lock.Backend {
					cluster := hostile.New(t, hostile.Config{Kind: kind})
					t.Cleanup(cluster.Close)
					return open(cluster, gateways)
				})
			})
		}
	}
}

func TestInspectorConformance(t *testing.T) {
	for name, kind := range map[string]hostile.Kind{"Strict": hostile.Strict, "Loose": hostile.Loose} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.RunInspector(t, func(t *testing.T) locktest.Inspected {
				cluster := hostile.New(t, hostile.Config{Kind: kind})
				t.Cleanup(cluster.Close)
				return open(cluster, 1).gateways[0]
			})
		})
	}
}

// several is a backend that spreads the operations over gateways in turn.
type several struct {
	gateways []*replicated.Backend
	next     atomic.Uint64
}

func open(cluster *hostile.Cluster, n int) *several {
	s := new(several)
	for range n {
		s.gateways = append(s.gateways, replicated.New(cluster.Open(), replicated.Options{RequestTimeout: 10 * time.Second}))
	}
	return s
}

func (s *several) any() *replicated.Backend {
	return s.gateways[s.next.Add(1)%uint64(len(s.gateways))]
}

func (s *several) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	return s.any().Acquire(ctx, req)
}

func (s *several) GiveBack(ctx context.Context, req lock.AcquireRequest, res lock.AcquireResult) error {
	return s.any().GiveBack(ctx, req, res)
}

func (s *several) Ready() (err error) {
	for _, g := range s.gateways {
		err = errors.Join(err, g.Ready())
	}
	return err
}

func (s *several) Release(ctx context.Context, key lock.Key, holder string) (bool, error) {
	return s.any().Release(ctx, key, holder)
}

func (s *several) Value(ctx context.Context, key lock.Key, detail bool) (lock.Value, error) {
	return s.any().Value(ctx, key, detail)
}

func (s *several) Reset(ctx context.Context, key lock.Key) error { return s.any().Reset(ctx, key) }

func (s *several) Drain() {
	for _, g := range s.gateways {
		g.Drain()
	}
}

func (s *several) Close() (err error) {
	for _, g := range s.gateways {
		if e := g.Close(); e != nil {
			err = e
		}
	}
	return err
}
