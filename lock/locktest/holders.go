package locktest

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// maxToken bounds fencing tokens, so that every JSON reader can hold them.
const maxToken = 1 << 53

var holderPromises = []promise{
	{"HolderHasOneSlot", "acquiring again with the same holder answers with the same token and takes no second slot", func(s *subject) {
		k := s.key("3")
		a := s.take(named(k, "a"), 1)
		b := s.take(named(k, "b"), 2)
		for range 3 {
			if again := s.take(named(k, "a"), 2); again.Token != a.Token {
				s.broken("the repeat got token %d; the grant had %d", again.Token, a.Token)
			}
		}
		s.take(anonymous(k), 3)
		if again := s.take(named(k, "b"), 3); again.Token != b.Token {
			s.broken("the repeat got token %d; the grant had %d", again.Token, b.Token)
		}
		s.release(k, "a", true)
		s.held(k, 2)
	}},
	{"RepeatIsAnsweredPastTheQueue", "a holder's repeat is answered at once, also when others are queued", func(s *subject) {
		k := s.key("1")
		a := s.take(named(k, "a"), 1)
		w := s.queue(anonymous(k), 1)
		if again := s.take(named(k, "a"), 1); again.Token != a.Token {
			s.broken("the repeat got token %d; the grant had %d", again.Token, a.Token)
		}
		w.waiting()
	}},
	{"NamedReleaseFreesThatHolder", "release with a holder frees that holder's slot and no other", func(s *subject) {
		k := s.key("3")
		s.take(named(k, "a"), 1)
		s.take(named(k, "b"), 2)
		s.take(anonymous(k), 3)
		s.release(k, "c", false)
		s.release(k, "a", true)
		s.release(k, "a", false)
		s.held(k, 2)
		s.release(k, "b", true)
		s.held(k, 1)
		s.release(k, "b", false)
		s.held(k, 1)
	}},
	{"AnonymousReleaseSparesNamed", "a slot taken with a holder is not freed by a release without", func(s *subject) {
		k := s.key("2")
		s.take(named(k, "a"), 1)
		s.release(k, "", false)
		s.held(k, 1)
		s.take(anonymous(k), 2)
		s.release(k, "", true)
		s.release(k, "", false)
		s.held(k, 1)
		s.release(k, "a", true)
		s.held(k, 0)
	}},
	{"B4RepeatedNamedReleaseHarmsNobody", "a repeated release with a holder is a no-op, whoever holds the lock by then", func(s *subject) {
		k := s.key("1")
		s.take(named(k, "a"), 1)
		b := s.queue(named(k, "b"), 1)
		s.release(k, "a", true)
		token := b.granted(1).Token
		s.release(k, "a", false)
		if v := s.detail(k); v.Held != 1 || len(v.Holders) != 1 || v.Holders[0].Token != token {
			s.broken("value gave %+v; want b holding with token %d", v, token)
		}
	}},
	{"TokensStrictlyIncrease", "a token strictly increases with every new named grant of the lock, across release and reset, and fits in 2^53", func(s *subject) {
		k := s.key("4")
		last := uint64(0)
		grown := func(res lock.AcquireResult) {
			s.Helper()
			if res.Token <= last || res.Token >= maxToken {
				s.broken("token %d after %d; want it greater, and less than 2^53", res.Token, last)
			}
			last = res.Token
		}
		for range 3 {
			grown(s.take(named(k, "a"), 1))
			grown(s.take(named(k, "b"), 2))
			s.release(k, "a", true)
			grown(s.take(named(k, "a"), 2))
			s.release(k, "b", true)
			s.reset(k)
			grown(s.take(named(k, "a"), 1))
			s.release(k, "a", true)
		}
		for n := int64(1); n <= 4; n++ {
			s.take(anonymous(k), n)
		}
		var waiters []*waiter
		for n := range int64(4) {
			waiters = append(waiters, s.queue(named(k, fmt.Sprint(n)), n+1))
		}
		for _, w := range waiters {
			// One by one: of slots that are free at once, gateways take theirs in
			// any order.
			s.release(k, "", true)
			res, err := w.end()
			if err != nil || !res.Acquired {
				s.broken("a waiting acquire gave %+v, error %v; want acquired", res, err)
			}
			grown(res)
		}
	}},
	{"AnonymousGrantHasNoToken", "without a holder there is no token and no expiry; a TTL without a holder does nothing", func(s *subject) {
		k := s.key("2")
		for n, r := range []lock.AcquireRequest{anonymous(k), withTTL(anonymous(k), time.Millisecond)} {
			if res := s.take(r, int64(n)+1); res.Token != 0 || res.ExpiresIn != 0 {
				s.broken("acquire gave %+v; want no token and no expiry", res)
			}
		}
	}},
	{"HolderQueuesOnce", "concurrent requests with the same holder share one place in the queue, and one slot", func(s *subject) {
		// Nothing shows how many of the requests have joined the place; they are
		// given more time in each round.
		for round := range 30 {
			s.queueTogether(round)
		}
	}},
	{"SharedPlaceEndsWithTheLast", "a holder's place in the queue ends with the last of its requests, not with the first", func(s *subject) {
		// Nothing shows that a second request has joined a place. It is given
		// more time in each round; one round in which it had is enough.
		const rounds = 40
		for round := range rounds {
			k := s.key("1")
			s.take(anonymous(k), 1)
			first := s.queue(named(k, "a"), 1)
			other := s.queue(anonymous(k), 2)
			second := s.begin(named(k, "a"))
			for range round {
				runtime.Gosched()
				s.held(k, 1)
			}
			first.cancel()
			first.failed(context.Canceled)
			s.queued(k, 2)
			s.release(k, "", true)
			select {
			case <-second.done:
				second.granted(1)
				other.waiting()
				return
			case <-other.done: // the second request came after the first had gone
				s.reset(k)
			}
		}
		s.broken("in none of %d rounds did the second request of a holder keep the place", rounds)
	}},
	{"ReleaseWithdrawsQueuedRequests", "release with a holder withdraws its queued requests, which resolve acquired:false, and nobody else's", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		a := s.queue(named(k, "a"), 1)
		b := s.queue(named(k, "b"), 2)
		s.release(k, "a", false)
		a.denied()
		s.queued(k, 1)
		s.release(k, "", true)
		b.granted(1)
	}},
	{"NamedWaiterIsToldItsToken", "a waiting acquire with a holder is answered with token and TTL, and holds its slot by name", func(s *subject) {
		k := s.key("1")
		a := s.take(named(k, "a"), 1)
		w := s.queue(withTTL(named(k, "b"), time.Hour), 1)
		s.release(k, "a", true)
		b := w.granted(1)
		if b.Token <= a.Token || b.ExpiresIn < time.Hour {
			s.broken("the waiter got %+v; want a token above %d and an hour", b, a.Token)
		}
		s.release(k, "", false)
		s.release(k, "b", true)
		s.held(k, 0)
	}},
}

// queueTogether lets requests of one holder wait for two slots.
func (s *subject) queueTogether(pause int) {
	s.Helper()
	k := s.key("2")
	s.take(anonymous(k), 1)
	s.take(anonymous(k), 2)
	var same []*waiter
	for range 8 {
		same = append(same, s.begin(named(k, "a")))
	}
	s.eventually("somebody waits", func() bool { return s.detail(k).Waiting > 0 })
	for range pause {
		runtime.Gosched()
		if n := s.detail(k).Waiting; n != 1 {
			s.broken("requests of one holder have %d places", n)
		}
	}
	s.release(k, "", true)
	s.release(k, "", true)
	token := uint64(0)
	for _, w := range same {
		res, err := w.end()
		if token == 0 {
			token = res.Token
		}
		if err != nil || !res.Acquired || res.Token != token {
			s.broken("one of the requests got %+v, error %v; want acquired with token %d", res, err, token)
		}
	}
	s.queued(k, 0)
	s.held(k, 1)
	s.release(k, "a", true)
	s.held(k, 0)
}
