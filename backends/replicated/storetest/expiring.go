package storetest

import (
	"errors"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// shortTTL is the TTL of keys that are meant to expire. Stores round it up.
const shortTTL = 300 * time.Millisecond

var expiringPromises = []promise{
	{"ExpiringIsRoundedUp", "NewExpiring makes a key with an ID that is not zero and never recurs, and a TTL rounded up", func(s *subject) {
		seen := make(map[uint64]bool)
		for _, g := range []*gateway{s.gateway, s.another()} {
			for _, ttl := range []time.Duration{time.Millisecond, shortTTL, time.Second, 1001 * time.Millisecond, time.Minute - 1, 24 * time.Hour} {
				_, x := s.newExpiring(g, ttl)
				if x.ID == 0 || seen[x.ID] || x.TTL < ttl {
					s.broken("a key for %v is %+v", ttl, x)
				}
				seen[x.ID] = true
				g.Discard(x.ID)
			}
		}
	}},
	{"ExpiringIsNeverEarly", "Remaining is how long a key has left at least, and zero once it has expired, never early", func(s *subject) {
		begun, x := s.named(s.gateway, shortTTL)
		s.expires(s.gateway, x, begun)
		s.expired(s.gateway, x)
		s.gone(s.another(), x)
	}},
	{"RestartExtends", "Restart starts the time of a key over", func(s *subject) {
		// On a machine that stalls, a key may expire before it is restarted;
		// then the round says nothing.
		for range 20 {
			begun, x := s.named(s.gateway, shortTTL)
			for range 2 {
				s.pass(x.TTL*2/3, func() {})
				again := time.Now()
				if err := s.Restart(s.ctx, x); err != nil {
					if !errors.Is(err, replicated.ErrExpired) || time.Since(begun) < x.TTL {
						s.broken("restart of a key of %v after %v failed: %v", x.TTL, time.Since(begun), err)
					}
					begun = time.Time{}
					break
				}
				begun = again
			}
			if !begun.IsZero() {
				s.expires(s.gateway, x, begun)
				return
			}
		}
		s.broken("keys of %v cannot be restarted in time", shortTTL)
	}},
	{"ExpiredForGood", "Restart of a key that has expired fails as ErrExpired, and does not revive it", func(s *subject) {
		begun, x := s.named(s.gateway, shortTTL)
		s.expires(s.gateway, x, begun)
		for range 3 {
			if err := s.Restart(s.ctx, x); !errors.Is(err, replicated.ErrExpired) {
				s.broken("restart of a key that has expired gave the error %v", err)
			}
			s.expired(s.gateway, x)
		}
	}},
	{"RemainingKeepsOrder", "Remaining answers in the order of ids", func(s *subject) {
		var keys []replicated.Expiring
		var ids []uint64
		begun := time.Now()
		for _, ttl := range []time.Duration{time.Hour, shortTTL, time.Hour, time.Hour} {
			_, x := s.newExpiring(s.gateway, ttl)
			keys, ids = append(keys, x), append(ids, x.ID)
		}
		k := key()
		res, err := s.Swap(s.ctx, replicated.Swap{Key: k, Value: []byte("a"), Expiring: keys, Session: s.session})
		if err != nil || !res.Applied {
			if time.Since(begun) > keys[1].TTL {
				s.Logf("the machine stalled for more than %v; nothing was tested", keys[1].TTL)
				return
			}
			s.broken("the swap gave %+v, error %v", res, err)
		}
		s.expires(s.gateway, keys[1], begun)
		left, err := s.Remaining(s.ctx, ids)
		s.must("remaining", err)
		if len(left) != 4 || left[0] <= 0 || left[1] != 0 || left[2] <= 0 || left[3] <= 0 {
			s.broken("Remaining gave %v; want the second of four to be zero", left)
		}
		left, err = s.Remaining(s.ctx, nil)
		s.must("remaining", err)
		if len(left) != 0 {
			s.broken("Remaining of no keys gave %v", left)
		}
	}},
	{"RefusedSwapPutsNoExpiring", "keys belong to a record once a swap that names them is applied; a refused one does not spoil them", func(s *subject) {
		k := key()
		_, x := s.newExpiring(s.gateway, time.Hour)
		e := s.create(s.gateway, k, "a")
		s.refuse(s.gateway, replicated.Swap{Key: k, Value: []byte("b"), Expiring: []replicated.Expiring{x}}, e)
		s.apply(s.gateway, replicated.Swap{Key: k, Expect: e.Revision, Value: []byte("c"), Expiring: []replicated.Expiring{x}})
		s.live(s.gateway, x)
	}},
	{"DiscardRemoves", "Discard removes keys that no record names any more, and no others", func(s *subject) {
		k := key()
		var keys []replicated.Expiring
		for range 4 {
			_, x := s.newExpiring(s.gateway, time.Hour)
			keys = append(keys, x)
		}
		e := s.apply(s.gateway, replicated.Swap{Key: k, Value: []byte("a"), Expiring: keys})
		s.apply(s.gateway, replicated.Swap{Key: k, Expect: e.Revision, Value: []byte("b")})
		s.Discard(keys[0].ID, keys[1].ID)
		s.Discard(keys[2].ID)
		s.Discard()
		for _, x := range keys[:3] {
			s.gone(s.gateway, x)
		}
		s.live(s.gateway, keys[3])
	}},
}

// newExpiring makes a key, and says when at the earliest its time began.
func (s *subject) newExpiring(g *gateway, ttl time.Duration) (begun time.Time, x replicated.Expiring) {
	s.Helper()
	begun = time.Now()
	x, err := g.NewExpiring(s.ctx, ttl)
	s.must("making an expiring key", err)
	return begun, x
}

// named makes a key and a record that it belongs to. On a machine that stalls
// the key may have expired before, and the swap may fail.
func (s *subject) named(g *gateway, ttl time.Duration) (begun time.Time, x replicated.Expiring) {
	s.Helper()
	for range 20 {
		begun, x := s.newExpiring(g, ttl)
		res, err := g.Swap(s.ctx, replicated.Swap{Key: key(), Value: []byte("a"), Expiring: []replicated.Expiring{x}, Session: g.session})
		if err == nil && res.Applied {
			return begun, x
		}
		if time.Since(begun) < x.TTL {
			s.broken("a swap with an expiring key of %v gave %+v, error %v", x.TTL, res, err)
		}
	}
	s.broken("keys of %v expire before a swap can name them", ttl)
	return begun, x
}

// remaining is Remaining of one key.
func (s *subject) remaining(g *gateway, x replicated.Expiring) time.Duration {
	s.Helper()
	left, err := g.Remaining(s.ctx, []uint64{x.ID})
	s.must("remaining", err)
	if len(left) != 1 || left[0] < 0 {
		s.broken("Remaining of one key gave %v", left)
	}
	return left[0]
}

// expires waits until a key has expired and checks that this is not early: not
// before its TTL has passed since begun, nor before any Remaining has said.
func (s *subject) expires(g *gateway, x replicated.Expiring, begun time.Time) {
	s.Helper()
	earliest := begun.Add(x.TTL)
	s.eventuallyIn(x.TTL+s.patience, "an expiring key expires", func() bool {
		asked := time.Now()
		left := s.remaining(g, x)
		if until := asked.Add(left); left > 0 && until.After(earliest) {
			earliest = until
		}
		if left == 0 && time.Now().Before(earliest) {
			s.broken("a key of %v expired %v after its time began, and %v before it might", x.TTL, time.Since(begun), time.Until(earliest))
		}
		return left == 0
	})
}

// expired checks that a key that has expired shows it.
func (s *subject) expired(g *gateway, x replicated.Expiring) {
	s.Helper()
	if left := s.remaining(g, x); left != 0 && g.Linearizable() {
		s.broken("a key that had expired has %v left", left)
	}
}

// live checks that a key with a long TTL has not expired.
func (s *subject) live(g *gateway, x replicated.Expiring) {
	s.Helper()
	if s.remaining(g, x) == 0 {
		s.broken("a key of %v has expired early", x.TTL)
	}
}

// gone waits until a key has expired or is removed.
func (s *subject) gone(g *gateway, x replicated.Expiring) {
	s.Helper()
	s.eventually("a key is gone", func() bool { return s.remaining(g, x) == 0 })
}
