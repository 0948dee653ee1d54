package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// store is one gateway's way to the cluster.
type store struct {
	cluster *Cluster
	closed  chan struct{}  // closed by Close
	streams sync.WaitGroup // their goroutines

	// The following is guarded by cluster.mu.
	ended bool // closed is closed
	cut   bool // see Cluster.Cut
	dice  *rand.Rand
	epoch uint64 // as this gateway knows it
}

// Get implements replicated.Store.
func (s *store) Get(ctx context.Context, key string) (e replicated.Entry, err error) {
	checkKey(key)
	c := s.cluster
	err = s.call(ctx, func(f fate) error {
		c.counts.Gets++
		e = c.read(key, f)
		return nil
	})
	if err != nil {
		return replicated.Entry{}, fmt.Errorf("reading %q: %w", key, err)
	}
	return e, nil
}

// Records implements replicated.Store. It reads ten records at a time, in the order
// of their keys, so that a key that was there all the time is not missed.
func (s *store) Records(ctx context.Context, yield func(string, replicated.Entry) bool) error {
	const atATime = 10
	c := s.cluster
	for after := ""; ; {
		var keys []string
		var entries []replicated.Entry
		err := s.call(ctx, func(f fate) error {
			for key := range c.records {
				if key > after {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			keys = keys[:min(len(keys), atATime)]
			for _, key := range keys {
				entries = append(entries, c.read(key, f))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("listing the records: %w", err)
		}
		for i, key := range keys {
			if entries[i].Revision != 0 && !yield(key, entries[i]) {
				return nil
			}
			after = key
		}
		if len(keys) < atATime {
			return nil
		}
	}
}

// Linearizable implements replicated.Store.
func (s *store) Linearizable() bool { return s.cluster.kind == Strict }

// Epoch implements replicated.Store. A gateway learns of a new epoch with the
// first answer, or the first news, that it gets in it.
func (s *store) Epoch() uint64 {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	return s.epoch
}

// Close implements replicated.Store. Sessions that have not been ended run out.
func (s *store) Close() error {
	c := s.cluster
	c.mu.Lock()
	if !s.ended {
		s.ended = true
		close(s.closed)
		for _, n := range c.sessions {
			if n.store == s {
				c.abandon(n)
			}
		}
	}
	c.mu.Unlock()
	s.streams.Wait()
	return nil
}

// begin begins a call: it fails if there is nothing to send it with, and draws
// its fate otherwise.
func (s *store) begin(ctx context.Context) (fate, error) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.ended {
		return fate{}, errClosed
	}
	if err := ctx.Err(); err != nil {
		return fate{}, err
	}
	f := c.draw(s.dice)
	if s.cut {
		f.arrives = false // it was never sent
	}
	return f, nil
}

// travel takes d, and all the time that the context has if the gateway is cut
// off then.
func (s *store) travel(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return errClosed
		}
	}
	s.cluster.mu.Lock()
	cut := s.cut
	s.cluster.mu.Unlock()
	if !cut {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return errClosed
	}
}

// call carries a call that is no swap to the cluster, where do is the call,
// with c.mu held, and its answer back.
func (s *store) call(ctx context.Context, do func(fate) error) error {
	f, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := s.travel(ctx, f.there); err != nil {
		if f.arrives {
			_ = s.arrive(f, do) // nobody hears the answer
		}
		return err
	}
	switch f.strike {
	case refuse:
		return errUnavailable
	case lose, late:
		return f.doubt
	case none, dropReply:
	}
	answer := s.arrive(f, do)
	if f.strike == dropReply {
		return f.doubt
	}
	if err := s.travel(ctx, f.back); err != nil {
		return err
	}
	return answer
}

// arrive carries out a call.
func (s *store) arrive(f fate, do func(fate) error) error {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	defer s.learn()
	return do(f)
}

// learn tells the gateway which epoch it is. The caller holds cluster.mu.
func (s *store) learn() { s.epoch = s.cluster.epoch }
