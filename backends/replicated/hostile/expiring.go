package hostile

import (
	"context"
	"fmt"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// TTLs are rounded up to ticks, and get some slack for the time between the
// making of a key and the swap that names it.
const (
	tick  = 200 * time.Millisecond
	slack = 100 * time.Millisecond
)

// expiringKey is a key that expires. Keys that have are kept until somebody
// looks, which changes nothing: time is only read.
type expiringKey struct {
	ttl  time.Duration
	due  time.Time
	late time.Duration // by how much it outlives that
	put  bool          // by a swap
}

func (k *expiringKey) start(ttl, late time.Duration) {
	k.ttl, k.late, k.due = ttl, late, time.Now().Add(ttl)
}

func (k *expiringKey) live() bool {
	return k != nil && time.Now().Before(k.due.Add(k.late))
}

// NewExpiring implements replicated.Store.
func (s *store) NewExpiring(ctx context.Context, ttl time.Duration) (e replicated.Expiring, err error) {
	if ttl <= 0 {
		panic(fmt.Sprintf("hostile: an expiring key cannot have the TTL %v", ttl))
	}
	c := s.cluster
	err = s.call(ctx, func(fate) error {
		c.lastID++
		e = replicated.Expiring{ID: c.lastID, TTL: roundUp(ttl)}
		k := &expiringKey{}
		k.start(e.TTL, upTo(s.dice, c.faults.ExpireLate))
		c.expiring[e.ID] = k
		return nil
	})
	if err != nil {
		return replicated.Expiring{}, fmt.Errorf("making an expiring key: %w", err)
	}
	return e, nil
}

// roundUp returns what the cluster makes of a TTL. One near the end of time is
// left as it is, since it cannot be rounded.
func roundUp(ttl time.Duration) time.Duration {
	if rounded := (ttl + tick - 1).Truncate(tick) + slack; rounded > ttl {
		return rounded
	}
	return ttl
}

// putExpiring makes keys belong to a record. Strict stores put them with the
// swap, which fails where one has expired. The caller holds c.mu.
func (c *Cluster) putExpiring(keys []replicated.Expiring) error {
	for _, e := range keys {
		if c.kind == Strict && !c.expiring[e.ID].live() {
			return fmt.Errorf("expiring key %d: %w", e.ID, replicated.ErrExpired)
		}
	}
	for _, e := range keys {
		if k := c.expiring[e.ID]; k != nil {
			k.put = true
		}
	}
	return nil
}

// Restart implements replicated.Store.
func (s *store) Restart(ctx context.Context, e replicated.Expiring) error {
	c := s.cluster
	err := s.call(ctx, func(fate) error {
		k := c.expiring[e.ID]
		if !k.live() {
			return replicated.ErrExpired
		}
		k.start(e.TTL, upTo(s.dice, c.faults.ExpireLate))
		return nil
	})
	if err != nil {
		return fmt.Errorf("restarting expiring key %d: %w", e.ID, err)
	}
	return nil
}

// Remaining implements replicated.Store. Of a key that no swap has put, a
// strict store knows nothing and says that it has expired.
func (s *store) Remaining(ctx context.Context, ids []uint64) (left []time.Duration, err error) {
	c := s.cluster
	err = s.call(ctx, func(f fate) error {
		for _, id := range ids {
			left = append(left, c.remaining(c.expiring[id], f))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking at %d expiring keys: %w", len(ids), err)
	}
	return left, nil
}

func (c *Cluster) remaining(k *expiringKey, f fate) time.Duration {
	if !k.live() || c.kind == Strict && !k.put {
		return 0
	}
	left := time.Until(k.due)
	if c.kind == Loose && c.befalls(f.stale, c.faults.Stale) { // a copy that has not heard of the last restart
		left = time.Duration(f.age * float64(left))
	}
	return max(left, 1) // overdue, but not expired
}

// Discard implements replicated.Store.
func (s *store) Discard(ids ...uint64) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.draw(s.dice)
	if s.ended || s.cut || f.strike != none && f.strike != dropReply {
		return
	}
	c.after(f.there, func() {
		for _, id := range ids {
			delete(c.expiring, id)
		}
	})
}
