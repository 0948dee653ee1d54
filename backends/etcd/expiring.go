package etcd

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sync/errgroup"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

const (
	// expirySlack is how much longer than asked for a key lives at least: time
	// for the swap that puts it.
	expirySlack = 500 * time.Millisecond

	// minExpiry is the shortest life that etcd grants with its default election
	// time-out.
	minExpiry = 2 * time.Second

	// maxExpiry is close to the longest life that etcd grants, 285 years.
	maxExpiry = 8_999_999_999 * time.Second

	// leastRemaining is what a key has left that is there, whatever its lease
	// says, which is whole seconds rounded down.
	leastRemaining = time.Millisecond

	maxGets     = 100 // of one transaction, which takes 128
	maxLookUps  = 16  // of leases at a time
	maxDiscards = 4096
)

// NewExpiring grants a lease. The key is put by the swap that names it.
func (s *Store) NewExpiring(ctx context.Context, ttl time.Duration) (replicated.Expiring, error) {
	lease, granted, err := s.grant(ctx, max(min(ttl, maxExpiry)+expirySlack, minExpiry))
	if err != nil {
		return replicated.Expiring{}, fmt.Errorf("making a key that expires: %w", err)
	}
	return replicated.Expiring{ID: uint64(lease), TTL: granted}, nil
}

// Restart renews the lease. Then it looks whether the key is there, since an etcd
// before 3.5.24 or 3.6.5 may say that it renewed a lease that is gone. A key that
// no swap has put yet is put for that, which etcd does only if it has the lease.
func (s *Store) Restart(ctx context.Context, e replicated.Expiring) error {
	const operation = "starting the time of a key over"
	ttl, err := s.renew(ctx, int64(e.ID))
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	if ttl == 0 {
		return fmt.Errorf("%s: %w", operation, replicated.ErrExpired)
	}
	key := s.keys.expiringKey(int64(e.ID))
	answer, err := s.read(ctx, key)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	if entry(answer, 0).Revision != 0 {
		return nil
	}
	if _, err = s.commit(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{put(key, nil, int64(e.ID))}}); err != nil {
		return fmt.Errorf("%s: %w", operation, expired(err))
	}
	return nil
}

// Remaining reads which keys are there, through the majority, and at the same
// time asks for the leases' time. A key that is there has 1 ms left at least; etcd
// deletes it up to a second and a half after its lease says 0.
func (s *Store) Remaining(ctx context.Context, ids []uint64) ([]time.Duration, error) {
	present := make([]bool, len(ids))
	left := make([]atomic.Int64, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxLookUps)
	for start := 0; start < len(ids); start += maxGets {
		chunk := ids[start:min(start+maxGets, len(ids))]
		group.Go(func() error { return s.present(ctx, chunk, present[start:]) })
	}
	for i, id := range ids {
		group.Go(func() error { return s.timeToLive(ctx, int64(id), &left[i]) })
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("reading the time that keys have left: %w", err)
	}
	remaining := make([]time.Duration, len(ids))
	for i := range ids {
		if present[i] {
			remaining[i] = max(leastRemaining, time.Duration(left[i].Load()))
		}
	}
	return remaining, nil
}

func (s *Store) present(ctx context.Context, ids []uint64, present []bool) error {
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = s.keys.expiringKey(int64(id))
	}
	answer, err := s.read(ctx, keys...)
	if err != nil {
		return err
	}
	for i := range ids {
		present[i] = entry(answer, i).Revision != 0
	}
	return nil
}

func (s *Store) timeToLive(ctx context.Context, lease int64, left *atomic.Int64) error {
	return s.call(ctx, func(ctx context.Context, c *clients) error {
		answer, err := c.lease.LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: lease}, callOptions...)
		if leaseGone(err) {
			return nil
		}
		left.Store(answer.GetTTL() * int64(time.Second))
		return err
	})
}

// Discard revokes leases, one after the other, in a goroutine that the first call
// starts and that ends with Close. What it cannot take runs out by itself.
func (s *Store) Discard(ids ...uint64) {
	s.startDiscarding.Do(func() { s.run(s.discard) })
	for _, id := range ids {
		select {
		case s.discards <- id:
		default:
			return
		}
	}
}

func (s *Store) discard() {
	for {
		select {
		case id := <-s.discards:
			ctx, cancel := context.WithTimeout(s.ctx, s.requestTimeout())
			_ = s.revoke(ctx, int64(id)) // else it runs out
			cancel()
		case <-s.ctx.Done():
			return
		}
	}
}
