package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// brief is a wait that is meant to run out.
const brief = 20 * time.Millisecond

var queuePromises = []promise{
	{"ReleaseHandsSlotToOldestWaiter", "among requests that queue, slots go in arrival order, each at the release that freed it", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		var waiters []*waiter
		for n := int64(1); n <= 6; n++ {
			r := anonymous(k)
			if n%3 == 0 {
				r = named(k, string(rune('a'+n)))
			}
			waiters = append(waiters, s.queue(r, n))
		}
		holder := ""
		for i, w := range waiters {
			w.waiting()
			s.release(k, holder, true)
			w.granted(1)
			for _, later := range waiters[i+1:] {
				later.waiting()
			}
			s.held(k, 1)
			holder = w.req.Holder
		}
		s.release(k, holder, true)
		s.held(k, 0)
	}},
	{"SemaphoreHandsSlotsToTheFirstInTheQueue", "with f freed slots the first f of the queue get them, and nobody else", func(s *subject) {
		k := s.key("3")
		for n := int64(1); n <= 3; n++ {
			s.take(anonymous(k), n)
		}
		var waiters []*waiter
		for n := int64(1); n <= 5; n++ {
			waiters = append(waiters, s.queue(anonymous(k), n))
		}
		for range 3 {
			s.release(k, "", true)
		}
		for _, w := range waiters[:3] {
			if res, err := w.end(); err != nil || !res.Acquired || res.Value < 1 || res.Value > 3 {
				s.broken("the first three in the queue: %+v, error %v; want acquired", res, err)
			}
		}
		s.queued(k, 2)
		s.held(k, 3)
		for _, w := range waiters[3:] {
			w.waiting()
		}
	}},
	{"GivenUpPlacesAreSkipped", "a waiter that gave up, timed out or whose client went away is skipped and leaves nothing behind", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		var waiters []*waiter
		for n := int64(1); n <= 9; n++ {
			waiters = append(waiters, s.queue(anonymous(k), n))
		}
		for i, n := range []int{0, 4, 8, 5} { // the head, the middle, the tail, a neighbour
			waiters[n].cancel()
			waiters[n].failed(context.Canceled)
			s.queued(k, int64(8-i))
		}
		late := anonymous(k)
		late.Wait = brief
		s.begin(late).denied()
		s.queued(k, 5)
		for _, n := range []int{1, 2, 3, 6, 7} {
			waiters[n].waiting()
			s.release(k, "", true)
			waiters[n].granted(1)
		}
		s.release(k, "", true)
		s.held(k, 0)
		s.queued(k, 0)
	}},
	{"TimeOutAnswersNotAcquired", "a wait that runs out answers acquired:false, not before its time, and takes nothing", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		for _, r := range []lock.AcquireRequest{anonymous(k), named(k, "a"), withTTL(named(k, "b"), time.Hour)} {
			r.Wait = brief
			begun := time.Now()
			s.begin(r).denied()
			if waited := time.Since(begun); waited < r.Wait {
				s.broken("the wait of %v ended after %v", r.Wait, waited)
			}
		}
		s.queued(k, 0)
		s.held(k, 1)
		s.release(k, "", true)
		s.held(k, 0)
		s.take(anonymous(k), 1)
	}},
	{"DeadContextDoesNotWait", "a request whose client has gone does not wait, and takes nothing", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		r := anonymous(k)
		r.Wait = lock.Forever
		if res, err := s.Acquire(ctx, r); !errors.Is(err, context.Canceled) || res.Acquired {
			s.broken("acquire gave %+v, error %v; want the context's error", res, err)
		}
		s.queued(k, 0)
		s.release(k, "", true)
		s.held(k, 0)
	}},
	{"NewcomerNeverOvertakes", "a newcomer never overtakes a queued request", func(s *subject) {
		k := s.key("2")
		s.take(anonymous(k), 1)
		s.take(anonymous(k), 2)
		w := s.queue(anonymous(k), 1)
		s.refused(anonymous(k))
		s.release(k, "", true)
		s.refused(anonymous(k))
		w.granted(2)
		s.refused(anonymous(k))
	}},
	{"B26ReleaserDoesNotBarge", "a client that releases and acquires again at once does not starve those who wait", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		w := s.queue(anonymous(k), 1)
		for range 50 {
			s.release(k, "", true)
			again := s.begin(anonymous(k))
			w.granted(1)
			again.waiting()
			s.queued(k, 1)
			w = again
		}
	}},
	{"TryOnceNeverQueues", "without a wait the answer comes at once and the queue stays as it is", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		w := s.queue(named(k, "a"), 1)
		s.refused(anonymous(k))
		s.refused(named(k, "a"))
		s.refused(named(k, "b"))
		negative := anonymous(k)
		negative.Wait = -time.Second
		s.refused(negative)
		s.queued(k, 1)
		w.waiting()
		s.release(k, "", true)
		w.granted(1)
	}},
	{"ResetEndsEveryWait", "reset resolves every queued acquire at once with acquired:false", func(s *subject) {
		k := s.key("2")
		s.take(anonymous(k), 1)
		s.take(named(k, "a"), 2)
		waiters := []*waiter{s.queue(anonymous(k), 1), s.queue(named(k, "b"), 2), s.queue(anonymous(k), 3)}
		s.reset(k)
		for _, w := range waiters {
			w.denied()
		}
		s.fresh(k)
		s.take(anonymous(k), 1)
		s.take(anonymous(k), 2)
		s.refused(anonymous(k))
		s.release(k, "", true)
		s.held(k, 1)
	}},
	{"WaitersLimit", "a queue at its limit refuses one more with 503 that names the limit, and nothing is changed", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		first := s.queue(named(k, "a"), 1)
		second := s.queue(anonymous(k), 2)
		r := anonymous(k)
		r.Wait, r.MaxWaiters = lock.Forever, 2
		_, err := s.begin(r).end()
		var limit *lock.LimitError
		if !errors.As(err, &limit) || limit.Max != 2 || !errors.Is(err, lock.ErrUnavailable) {
			s.broken("acquire gave the error %v; want a LimitError of 2", err)
		}
		s.queued(k, 2)
		s.release(k, "", true)
		first.granted(1)
		s.release(k, "a", true)
		second.granted(1)
		s.release(k, "", true)
		s.take(r, 1)
	}},
}
