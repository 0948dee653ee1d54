package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

var sessionPromises = []promise{
	{"SessionIDsDiffer", "a session's ID identifies it for all time, and is never zero", func(s *subject) {
		seen := make(map[replicated.SessionID]bool)
		for _, g := range []*gateway{s.gateway, s.another()} {
			for range 5 {
				id := s.openSession(g).ID()
				if id == 0 || seen[id] {
					s.broken("a session has the ID %x", id)
				}
				seen[id] = true
			}
		}
	}},
	{"SessionLives", "the store keeps a session alive until it is ended, beyond SessionTTL", func(s *subject) {
		a, b := s.gateway, s.another()
		ended := 0
		s.pass(a.SessionTTL()*3/2, func() {
			select {
			case <-a.session.Done():
				s.broken("Done says that a session that lives has ended")
			default:
			}
			for _, g := range []*gateway{a, b} {
				if s.sessionEnded(g, a.session) {
					ended++
				}
			}
		})
		if ended > 0 {
			s.Logf("SessionEnded said %d times that a session that lives has ended, which it may", ended)
		}
		for _, g := range []*gateway{a, b} {
			s.eventually("SessionEnded says that a session that lives has not", func() bool { return !s.sessionEnded(g, a.session) })
		}
		s.create(a, key(), "a")
	}},
	{"EndEndsTheSession", "End ends the session: Done is closed, SessionEnded says so to everybody, and no other session ends", func(s *subject) {
		a, b := s.gateway, s.another()
		other := s.openSession(a)
		s.must("end", a.session.End(s.ctx))
		s.closes("Done is closed", a.session.Done())
		for _, g := range []*gateway{a, b} {
			s.eventually("SessionEnded says that it has", func() bool { return s.sessionEnded(g, a.session) })
			s.eventually("SessionEnded says that another has not", func() bool { return !s.sessionEnded(g, other) })
		}
		select {
		case <-other.Done():
			s.broken("the end of a session closed Done of another")
		default:
		}
	}},
	{"SessionRunsOut", "a session of a gateway that is gone ends once the store has not heard of it for SessionTTL", func(s *subject) {
		a, b := s.another(), s.gateway
		s.close(a)
		s.eventuallyIn(b.SessionTTL()+s.patience, "SessionEnded says that it has", func() bool { return s.sessionEnded(b, a.session) })
	}},
	{"FenceSparesTheLiving", "Fence stops swaps that were sent before, and no other", func(s *subject) {
		before := key()
		e := s.create(s.gateway, before, "a")
		s.must("fence", s.session.Fence(s.ctx))
		s.reads(s.gateway, before, e)
		s.create(s.gateway, key(), "b")
		s.must("fence", s.session.Fence(s.ctx))
		s.apply(s.gateway, replicated.Swap{Key: before, Expect: e.Revision, Value: []byte("c")})
		s.create(s.gateway, key(), "d")
	}},
}

var fencePromises = []promise{
	{"EndedSessionCreatesNothing", "a swap that expects no record fails as ErrSessionEnded and ErrNotApplied under a session that has ended", func(s *subject) {
		k := key()
		session := s.openSession(s.gateway)
		s.must("end", session.End(s.ctx))
		res, err := s.Swap(s.ctx, replicated.Swap{Key: k, Value: []byte("a"), Session: session})
		if err == nil {
			s.broken("the swap gave %+v", res)
		}
		s.notApplied(err, replicated.ErrSessionEnded)
		s.reads(s.gateway, k, replicated.Entry{})
		s.create(s.gateway, k, "b")
	}},
	{"EndedSessionIsNotFenced", "Fence fails as ErrSessionEnded if the session has ended", func(s *subject) {
		session := s.openSession(s.gateway)
		s.must("fence", session.Fence(s.ctx))
		s.must("end", session.End(s.ctx))
		if err := session.Fence(s.ctx); !errors.Is(err, replicated.ErrSessionEnded) {
			s.broken("Fence gave the error %v", err)
		}
	}},
}

var announcementPromises = []promise{
	{"FollowSessionsTellsOfEnds", "FollowSessions reports sessions that have just ended, and none that lives", func(s *subject) {
		a, b := s.gateway, s.another()
		ends := s.followSessions(b)
		ends.hears(a)
		for _, g := range []*gateway{a, b} {
			if ends.of(g.session.ID()) {
				s.broken("FollowSessions reported the end of a session that lives")
			}
		}
	}},
	{"FollowSessionsEndsWithItsContext", "FollowSessions calls ended until its context is done", func(s *subject) {
		a, b := s.gateway, s.another()
		ended, other := s.followSessions(b), s.followSessions(b)
		ended.hears(a)
		ended.cancel()
		s.quiet(ended.count, func() { other.hears(a) })
	}},
}

func (s *subject) sessionEnded(g *gateway, session replicated.Session) bool {
	s.Helper()
	ended, err := g.SessionEnded(s.ctx, session.ID())
	s.must("SessionEnded", err)
	return ended
}

// ends are the sessions of which FollowSessions says that they have ended.
// Parallel tests may end sessions, too.
type ends struct {
	s      *subject
	cancel context.CancelFunc
	news   chan struct{} // has capacity 1: one more call

	mu    sync.Mutex // guards the following
	ids   map[replicated.SessionID]bool
	calls int
}

func (s *subject) followSessions(g *gateway) *ends {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	s.Cleanup(cancel)
	e := &ends{s: s, cancel: cancel, news: make(chan struct{}, 1), ids: make(map[replicated.SessionID]bool)}
	_ = s.within("FollowSessions", func() error {
		g.FollowSessions(ctx, e.notify)
		return nil
	})
	return e
}

func (e *ends) notify(id replicated.SessionID) {
	e.mu.Lock()
	e.ids[id] = true
	e.calls++
	e.mu.Unlock()
	select {
	case e.news <- struct{}{}:
	default:
	}
}

func (e *ends) of(id replicated.SessionID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ids[id]
}

func (e *ends) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}

// hears ends sessions of a gateway until one is heard of: stores may begin to
// follow a little later, and may lose news.
func (e *ends) hears(g *gateway) {
	e.s.Helper()
	deadline := time.NewTimer(e.s.patience)
	defer deadline.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var ended []replicated.SessionID
	end := func() {
		session := e.s.openSession(g)
		e.s.must("end", session.End(e.s.ctx))
		ended = append(ended, session.ID())
	}
	end()
	for {
		for _, id := range ended {
			if e.of(id) {
				return
			}
		}
		select {
		case <-e.news:
		case <-tick.C:
			end()
		case <-deadline.C:
			e.s.broken("FollowSessions told of no end within %v", e.s.patience)
		}
	}
}
