package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

func (b *fake) NewExpiring(ctx context.Context, ttl time.Duration) (replicated.Expiring, error) {
	if err := b.context(ctx); err != nil {
		return replicated.Expiring{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lastID++; b.fault == repeatsExpiringID {
		b.lastID = 1
	}
	x := replicated.Expiring{ID: b.lastID, TTL: ttl}
	if b.fault == roundsDown {
		x.TTL = ttl.Truncate(time.Second)
	}
	b.expiring[x.ID] = time.Now().Add(b.life(x))
	return x, nil
}

// life is how long a key lasts.
func (d *fakeData) life(x replicated.Expiring) time.Duration {
	if d.fault == expiresEarly {
		return x.TTL * 9 / 10
	}
	return x.TTL
}

func (b *fake) Restart(ctx context.Context, x replicated.Expiring) error {
	if err := b.context(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !time.Now().Before(b.expiring[x.ID]) && b.fault != revives {
		if b.fault == expiredVaguely {
			return errors.New("it is not there")
		}
		return replicated.ErrExpired
	}
	if b.fault != restartsNothing {
		b.expiring[x.ID] = time.Now().Add(b.life(x))
	}
	return nil
}

func (b *fake) Remaining(ctx context.Context, ids []uint64) ([]time.Duration, error) {
	if err := b.context(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	left := make([]time.Duration, len(ids))
	for i, id := range ids {
		left[i] = max(0, time.Until(b.expiring[id]))
		switch {
		case b.fault == overstatesRemaining && left[i] > 0:
			left[i] += 100 * time.Millisecond
		case b.fault == neverExpires:
			left[i] = max(1, left[i])
		case b.fault == putsOnce && b.spoilt[id]:
			left[i] = 0
		}
	}
	if b.fault == sortsRemaining {
		slices.Sort(left)
	}
	return left, nil
}

func (b *fake) Discard(ids ...uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.fault {
	case discardsNothing:
	case discardsAll:
		clear(b.expiring)
	default:
		for _, id := range ids {
			delete(b.expiring, id)
		}
	}
}
