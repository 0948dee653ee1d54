package nats

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

const (
	// expirySlack is how much longer than asked for a key lives at least: time for
	// the swap that names it.
	expirySlack = 500 * time.Millisecond

	// maxExpiry is close to the longest life that servers can count.
	maxExpiry = 200 * 365 * 24 * time.Hour

	// leastRemaining is what a key has left that is there, whatever its message's
	// time says.
	leastRemaining = time.Millisecond

	maxLookUps  = 16 // of keys at a time
	maxDiscards = 4096
)

// NewExpiring puts a key. A swap that names it changes nothing about it.
//
// To the servers it lives longer than we say, by what their clocks may differ: one
// dates the message, and each lets it expire by its own.
func (s *Store) NewExpiring(ctx context.Context, ttl time.Duration) (replicated.Expiring, error) {
	e := replicated.Expiring{
		ID:  newID(),
		TTL: time.Duration(seconds(min(ttl, maxExpiry)+expirySlack)) * time.Second,
	}
	if _, err := s.publish(ctx, life(s.keys.expiringKey(e.ID), e.TTL, 0)); err != nil {
		return replicated.Expiring{}, fmt.Errorf("making a key that expires: %w", err)
	}
	return e, nil
}

// life makes the message that begins the time of a key, if its last sequence is as
// given. It is the only kind that such keys are put with: one without a time to
// live would make them immortal.
func life(key string, ttl time.Duration, last uint64) *nats.Msg {
	return message(key, nil, lastIs(last), seconds(ttl+clockSkew))
}

// Restart puts the key again, on condition that it is still there.
func (s *Store) Restart(ctx context.Context, e replicated.Expiring) error {
	const operation = "starting the time of a key over"
	key := s.keys.expiringKey(e.ID)
	for {
		found, err := s.lifeOf(ctx, key)
		if err != nil {
			return fmt.Errorf("%s: %w", operation, err)
		}
		if !found.live() {
			return fmt.Errorf("%s: %w", operation, replicated.ErrExpired)
		}
		_, err = s.publish(ctx, life(key, e.TTL, found.sequence))
		if conflict, _ := conflicts(err); !conflict {
			if err != nil {
				return fmt.Errorf("%s: %w", operation, err)
			}
			return nil
		}
		if !sleep(ctx, busyWait) { // it was put meanwhile, or has expired
			return fmt.Errorf("%s: %w", operation, ctx.Err())
		}
	}
}

// lifeOf reads a key. If it returns none, or one that was removed, the key has
// expired for good.
//
// That a read shows nothing is no proof: it may be old, and by the clock of a server
// that leads next the key may be there yet. So the place is taken, on condition that
// there is nothing. From then on a Restart is refused, since it names a sequence of
// before; and what took the place is never replaced, and runs out by itself.
func (s *Store) lifeOf(ctx context.Context, key string) (stored, error) {
	for {
		found, err := s.last(ctx, key)
		if err != nil || found.sequence != 0 {
			return found, err
		}
		_, err = s.publish(ctx, removal(key, lastIs(0)))
		if conflict, _ := conflicts(err); !conflict {
			return stored{}, err
		}
		if !sleep(ctx, busyWait) {
			return stored{}, ctx.Err()
		}
	}
}

// Remaining reads the keys. Of one that is there, the time that is left is estimated
// by the time of its message; it is there until somebody has taken its place.
func (s *Store) Remaining(ctx context.Context, ids []uint64) ([]time.Duration, error) {
	remaining := make([]time.Duration, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxLookUps)
	begun := s.clock.now()
	for i, id := range ids {
		group.Go(func() error {
			found, err := s.lifeOf(ctx, s.keys.expiringKey(id))
			if err == nil && found.live() {
				remaining[i] = max(leastRemaining, found.expires().Sub(begun)-clockSkew)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("reading the time that keys have left: %w", err)
	}
	return remaining, nil
}

// expires returns when the message expires by the clock that dated it.
func (m *stored) expires() time.Time {
	ttl, err := strconv.ParseInt(m.header.Get(nats.MsgTTLHdr), 10, 64)
	if err != nil {
		return m.time // not ours; it is there, which is all that can be said
	}
	return m.time.Add(time.Duration(ttl) * time.Second)
}

// Discard removes keys, one after the other, in a goroutine that the first call
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
			_, _ = s.publish(ctx, removal(s.keys.expiringKey(id), nil)) // else it runs out
			cancel()
		case <-s.ctx.Done():
			return
		}
	}
}
