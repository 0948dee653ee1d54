package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

var closePromises = []promise{
	{"CloseEndsNews", "no call of notify is made after Close has returned", func(s *subject) {
		a := s.another()
		w := s.writer(s.gateway, key())
		var closed, late atomic.Bool
		heard := make(chan struct{})
		var once sync.Once
		_ = s.within("Follow", func() error {
			a.Follow(s.ctx, w.key, func(replicated.Event) {
				if closed.Load() {
					late.Store(true)
				}
				once.Do(func() { close(heard) })
			})
			return nil
		})
		s.closes("Follow reports something", heard)
		other := s.follow(s.gateway, w.key)
		other.missed()
		for range 5 { // news are on their way when it closes
			w.write()
		}
		s.close(a)
		closed.Store(true)
		other.hears(w)
		other.hears(w)
		if late.Load() {
			s.broken("a call was made after Close had returned")
		}
	}},
}

// noGoroutines is apart from the others, since theirs would be found.
var noGoroutines = promise{"CloseLeavesNoGoroutines", "Close ends what the store has in this process", func(s *subject) {
	s.use(s.another()) // so that what servers in this process start at first use is there
	before := goleak.IgnoreCurrent()
	s.use(s.another())
	var left error
	s.Cleanup(func() {
		if left != nil {
			s.Logf("%v", left)
		}
	})
	s.eventually("every goroutine of a closed store has ended", func() bool {
		left = goleak.Find(before)
		return left == nil
	})
}}

// use uses everything a store has, and closes it without ending anything.
func (s *subject) use(g *gateway) {
	s.Helper()
	k := key()
	s.follow(g, k).missed()
	s.followSessions(g)
	g.Follow(s.ctx, key(), func(replicated.Event) {})
	_, x := s.newExpiring(g, time.Hour)
	e := s.apply(g, replicated.Swap{Key: k, Value: []byte("a"), Expiring: []replicated.Expiring{x}})
	s.apply(g, replicated.Swap{Key: k, Expect: e.Revision, Value: []byte("b"), Idle: true})
	s.reads(g, key(), replicated.Entry{})
	s.must("restart", g.Restart(s.ctx, x))
	s.live(g, x)
	s.must("fence", g.session.Fence(s.ctx))
	s.must("end", s.openSession(g).End(s.ctx))
	g.Discard(x.ID)
	s.close(g)
}
