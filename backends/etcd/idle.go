package etcd

import (
	"context"
	"time"
)

const (
	// idleShare is how long, and idleKeys for how many keys, idle records get
	// the same lease. Revoking a lease deletes its keys in one step, so they must
	// not be many.
	idleShare = time.Minute
	idleKeys  = 1000
)

// idleLeases lets idle records be forgotten by binding them to leases that nobody
// keeps alive. Records that go idle at about the same time share one, which makes
// this one write a minute, or per thousand records. Who puts a record again
// without the lease takes it off.
type idleLeases struct {
	turn chan struct{} // has room for one, who may use what follows

	lease int64
	until time.Time // when its last key may be put
	left  int       // how many keys it may take yet
}

// granter makes leases.
type granter interface {
	grant(ctx context.Context, ttl time.Duration) (lease int64, granted time.Duration, err error)
	forgetAfter() time.Duration
}

// take returns a lease for one key, other than the one that is known to be gone.
func (l *idleLeases) take(ctx context.Context, g granter, gone int64) (int64, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if l.left == 0 || l.lease == gone || !time.Now().Before(l.until) {
		// The last key is put idleShare after this, and is to have its time, too.
		lease, _, err := g.grant(ctx, g.forgetAfter()+idleShare)
		if err != nil {
			return 0, err
		}
		l.lease, l.left, l.until = lease, idleKeys, time.Now().Add(idleShare)
	}
	l.left--
	return l.lease, nil
}

func (s *Store) forgetAfter() time.Duration { return s.options.Load().ForgetAfter }
