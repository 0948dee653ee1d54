package locktest

import (
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// A TTL that is meant to run out, and one that is not.
const (
	shortTTL = 100 * time.Millisecond
	longTTL  = time.Hour
)

var ttlPromises = []promise{
	{"SlotFreesItselfNeverEarly", "a slot with a TTL frees itself after that long, is handed to the oldest waiter, and never early", func(s *subject) {
		k := s.key("1")
		begun := time.Now()
		a := s.take(withTTL(named(k, "a"), shortTTL), 1)
		if a.ExpiresIn < shortTTL {
			s.broken("a TTL of %v gave expiry in %v; want it rounded up, if at all", shortTTL, a.ExpiresIn)
		}
		w := s.begin(named(k, "b"))
		b := w.granted(1)
		if after := time.Since(begun); after < a.ExpiresIn {
			s.broken("the slot was to expire in %v and was freed after %v", a.ExpiresIn, after)
		}
		if b.Token <= a.Token {
			s.broken("token %d after %d; want it greater", b.Token, a.Token)
		}
		s.release(k, "a", false)
		s.held(k, 1)
	}},
	{"SlotFreesItselfUnobserved", "a slot with a TTL is free after it, also when nobody waits", func(s *subject) {
		k := s.key("2")
		s.take(anonymous(k), 1)
		s.take(withTTL(named(k, "a"), shortTTL), 2)
		s.eventually("a slot past its TTL reads as free", func() bool { return s.detail(k).Held == 1 })
		s.release(k, "a", false)
		s.take(anonymous(k), 2)
	}},
	{"B30ClockStartsAtTheGrant", "the TTL counts from the grant, not from the request", func(s *subject) {
		k := s.key("1")
		s.take(named(k, "a"), 1)
		w := s.queue(withTTL(named(k, "b"), shortTTL), 1)
		timeout := anonymous(k)
		timeout.Wait = 2 * shortTTL
		s.begin(timeout).denied()
		next := s.queue(anonymous(k), 2)
		released := time.Now()
		s.release(k, "a", true)
		b := w.granted(1)
		if b.ExpiresIn < shortTTL {
			s.broken("a TTL of %v gave expiry in %v at the grant", shortTTL, b.ExpiresIn)
		}
		next.granted(1)
		if after := time.Since(released); after < b.ExpiresIn {
			s.broken("the slot was to expire in %v and was freed %v after the release before", b.ExpiresIn, after)
		}
	}},
	{"RenewalExtends", "acquiring again with the same holder and a TTL renews it", func(s *subject) {
		k := s.key("1")
		a := s.take(withTTL(named(k, "a"), longTTL/2), 1)
		again := s.take(withTTL(named(k, "a"), longTTL), 1)
		if again.Token != a.Token || again.ExpiresIn < longTTL*3/4 {
			s.broken("the renewal gave %+v; want token %d and about %v", again, a.Token, longTTL)
		}
		if v := s.detail(k); len(v.Holders) != 1 || v.Holders[0].ExpiresIn < longTTL*3/4 {
			s.broken("value gave %+v; want about %v left", v, longTTL)
		}
	}},
	{"RenewedSlotOutlivesItsFirstTTL", "a renewed slot does not end when its first TTL would have", func(s *subject) {
		// On a machine that stalls, the slot may run out before it is renewed;
		// then the holder gets a new one, and the round says nothing.
		const rounds = 20
		for range rounds {
			k := s.key("1")
			a := s.take(withTTL(named(k, "a"), shortTTL), 1)
			again := s.take(withTTL(named(k, "a"), longTTL), 1)
			if again.Token != a.Token {
				continue
			}
			b := named(k, "b")
			b.Wait = 3 * a.ExpiresIn
			s.begin(b).denied()
			s.held(k, 1)
			return
		}
		s.broken("in none of %d rounds was the slot renewed before it ran out", rounds)
	}},
	{"RenewalShortens", "a renewal replaces the expiry, also by an earlier one", func(s *subject) {
		k := s.key("1")
		s.take(withTTL(named(k, "a"), longTTL), 1)
		s.take(withTTL(named(k, "a"), shortTTL), 1)
		s.begin(named(k, "b")).granted(1)
	}},
	{"RepeatWithoutTTLLeavesTheExpiry", "acquiring again without a TTL leaves the expiry as it is", func(s *subject) {
		k := s.key("2")
		s.take(withTTL(named(k, "a"), longTTL), 1)
		if again := s.take(named(k, "a"), 1); again.ExpiresIn <= 0 || again.ExpiresIn > longTTL+time.Minute {
			s.broken("the repeat gave %+v; want at most about %v left", again, longTTL)
		}
		s.take(named(k, "b"), 2)
		if again := s.take(named(k, "b"), 2); again.ExpiresIn != 0 {
			s.broken("the repeat gave %+v; want no TTL", again)
		}
		s.take(withTTL(named(k, "b"), longTTL), 2)
		if again := s.take(named(k, "b"), 2); again.ExpiresIn <= 0 {
			s.broken("the repeat gave %+v; want the TTL that was set meanwhile", again)
		}
	}},
	{"B29LateRenewalIsANewGrant", "a holder whose slot ran out gets a new grant with a larger token, and only when it is free", func(s *subject) {
		k := s.key("1")
		a := s.take(withTTL(named(k, "a"), shortTTL), 1)
		b := s.begin(named(k, "b")).granted(1)
		s.refused(withTTL(named(k, "a"), shortTTL))
		s.release(k, "b", true)
		if late := s.take(withTTL(named(k, "a"), longTTL), 1); late.Token <= b.Token || b.Token <= a.Token {
			s.broken("the tokens of a, b, a were %d, %d, %d; want them to grow", a.Token, b.Token, late.Token)
		}
	}},
	{"OldTTLDoesNotEndANewSlot", "the TTL of a slot that was released ends nothing, least of all the holder's next slot", func(s *subject) {
		k := s.key("1")
		a := s.take(withTTL(named(k, "a"), 4*shortTTL), 1)
		s.release(k, "a", true)
		s.take(named(k, "a"), 1)
		b := named(k, "b")
		b.Wait = 3 * a.ExpiresIn
		s.begin(b).denied()
		s.held(k, 1)
		s.reset(k)
		s.take(withTTL(named(k, "a"), shortTTL), 1)
		s.reset(k)
		s.take(named(k, "a"), 1)
		s.begin(b).denied()
		s.held(k, 1)
	}},
	{"EndlessTTL", "a TTL too long for a clock is no error and does not run out", func(s *subject) {
		k := s.key("1")
		a := s.take(withTTL(named(k, "a"), lock.Forever), 1)
		if a.ExpiresIn <= longTTL {
			s.broken("acquire gave %+v; want a very long time left", a)
		}
		s.take(withTTL(named(k, "a"), lock.Forever), 1)
		s.held(k, 1)
	}},
}
