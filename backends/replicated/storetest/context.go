package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

var contextPromises = []promise{
	{"CallsEndWithTheirContext", "all methods return soon after their context is done", func(s *subject) {
		gone, cancel := context.WithCancel(s.ctx)
		cancel()
		g := s.gateway
		_, x := s.named(g, time.Hour)
		session := s.openSession(g)
		ignore := func(replicated.Event) {}
		for what, call := range map[string]func(){
			"Swap": func() {
				_, _ = g.Swap(gone, replicated.Swap{Key: key(), Value: []byte("a"), Session: g.session})
			},
			"Get":            func() { _, _ = g.Get(gone, key()) },
			"Records":        func() { _ = g.Records(gone, func(string, replicated.Entry) bool { return true }) },
			"OpenSession":    func() { _, _ = g.OpenSession(gone, "") },
			"Sessions":       func() { _, _ = g.Sessions(gone) },
			"SessionEnded":   func() { _, _ = g.SessionEnded(gone, session.ID()) },
			"NewExpiring":    func() { _, _ = g.NewExpiring(gone, time.Hour) },
			"Restart":        func() { _ = g.Restart(gone, x) },
			"Remaining":      func() { _, _ = g.Remaining(gone, []uint64{x.ID}) },
			"Follow":         func() { g.Follow(gone, key(), ignore) },
			"FollowSessions": func() { g.FollowSessions(gone, func(replicated.SessionID) {}) },
			"Fence":          func() { _ = session.Fence(gone) },
			"End":            func() { _ = session.End(gone) },
		} {
			_ = s.within(what+" with a context that is done", func() error {
				call()
				return nil
			})
		}
		s.create(g, key(), "the store still works")
	}},
	{"NotAppliedMeansNever", "a swap that fails as ErrNotApplied did not happen and never will", func(s *subject) {
		certain := make(map[string]bool)
		for n := range 40 {
			// Some contexts are done before, some while the swap is under way.
			ctx, cancel := context.WithTimeout(s.ctx, time.Duration(n/4)*rand.N(200*time.Microsecond)) //nolint:gosec // Not a secret.
			k := key()
			_, err := s.Swap(ctx, replicated.Swap{Key: k, Value: []byte("a"), Session: s.session})
			cancel()
			if errors.Is(err, replicated.ErrNotApplied) {
				certain[k] = true
				s.reads(s.gateway, k, replicated.Entry{})
			}
		}
		for k := range certain {
			s.create(s.gateway, k, "b")
		}
	}},
}
