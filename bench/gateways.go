package main

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/etcd"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/lock"
)

// gateway is a backend with a store, and so a connection, of its own, as every
// Caddy has them.
type gateway struct {
	lock.Backend
	store *countingStore
}

// openGateway returns a gateway that has locks and a session.
func openGateway(ctx context.Context, endpoints []string, forgetAfter time.Duration) (*gateway, error) {
	store, err := etcd.Open(etcd.Options{ //nolint:contextcheck // It lives until it is closed.
		Connection: etcd.Connection{
			Endpoints:        endpoints,
			DialTimeout:      etcd.DefaultDialTimeout,
			KeepAliveTime:    etcd.DefaultKeepAliveTime,
			KeepAliveTimeout: etcd.DefaultKeepAliveTimeout,
		},
		Prefix:         etcd.DefaultPrefix,
		RequestTimeout: etcd.DefaultRequestTimeout,
		SessionTTL:     etcd.DefaultSessionTTL,
		ForgetAfter:    forgetAfter,
		Logger:         zap.NewNop(),
	})
	if err != nil {
		return nil, err
	}
	counting := &countingStore{Store: store}
	g := &gateway{replicated.New(counting, replicated.Options{RequestTimeout: etcd.DefaultRequestTimeout}), counting}
	l := gatewayLock{g, newMutexKey()}
	if err = l.lock(ctx); err == nil {
		err = l.unlock(ctx)
	}
	if err != nil {
		_ = g.Close()
		return nil, err
	}
	return g, nil
}

// countingStore counts what the engine asks of a store.
type countingStore struct {
	replicated.Store
	swaps    atomic.Int64 // all of them
	refusals atomic.Int64 // swaps that met another revision
	reads    atomic.Int64 // of a record
}

func (s *countingStore) Swap(ctx context.Context, swap replicated.Swap) (replicated.SwapResult, error) {
	s.swaps.Add(1)
	res, err := s.Store.Swap(ctx, swap)
	if err == nil && !res.Applied {
		s.refusals.Add(1)
	}
	return res, err
}

func (s *countingStore) Get(ctx context.Context, key string) (replicated.Entry, error) {
	s.reads.Add(1)
	return s.Store.Get(ctx, key)
}
