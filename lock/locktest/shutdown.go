package locktest

import (
	"errors"

	"github.com/lockgateway/lockgateway/lock"
)

var shutdownPromises = []promise{
	{"DrainEndsWaitingOnly", "at shutdown waiters are told at once and lose nothing but their place; everything else is served on", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		waiters := []*waiter{s.queue(anonymous(k), 1), s.queue(named(k, "a"), 2)}
		s.Drain()
		for _, w := range waiters {
			w.failed(lock.ErrClosing)
		}
		s.Drain()
		r := anonymous(k)
		r.Wait = lock.Forever
		s.begin(r).failed(lock.ErrClosing)
		s.refused(anonymous(k))
		s.held(k, 1)
		s.release(k, "", true)
		s.held(k, 0)
		s.take(r, 1)
		s.reset(k)
		s.fresh(k)
	}},
	{"CloseRefusesEverything", "a closed backend answers every operation with an error that says so", func(s *subject) {
		k := s.key("1")
		r := anonymous(k)
		res := s.take(r, 1)
		w := s.queue(r, 1)
		if err := s.Close(); err != nil {
			s.broken("closing failed: %v", err)
		}
		w.failed(lock.ErrClosing)
		_, acquireErr := s.Acquire(s.ctx, r)
		_, releaseErr := s.Release(s.ctx, k, "")
		_, valueErr := s.Value(s.ctx, k, true)
		for what, err := range map[string]error{
			"acquire": acquireErr, "release": releaseErr, "value": valueErr,
			"reset": s.Reset(s.ctx, k), "give-back": s.GiveBack(s.ctx, r, res),
		} {
			if !errors.Is(err, lock.ErrClosing) {
				s.broken("%s after close gave the error %v; want %v", what, err, lock.ErrClosing)
			}
		}
	}},
}
