package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/lock"
)

// gateway is a backend with a store, and so a connection, of its own, as every
// Caddy has them.
type gateway struct {
	lock.Backend
	store *countingStore
}

// openGateway returns the i-th gateway on a store, that has locks and a session.
func openGateway(ctx context.Context, on store, i int, forgetAfter time.Duration) (*gateway, error) {
	opened, err := on.open(i, forgetAfter)
	if err != nil {
		return nil, err
	}
	counting := &countingStore{Store: opened}
	//nolint:contextcheck // It outlives the call.
	g := &gateway{replicated.New(counting, replicated.Options{RequestTimeout: on.requestTimeout()}), counting}
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
