// Package storetest is the conformance suite of replicated stores. It states
// every promise of replicated.Store as a test; a store's own tests call Run,
// and a failure says which promise is broken:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) func() replicated.Store {
//			server := startServer(t)
//			return func() replicated.Store { return mystore.Open(server) }
//		}, storetest.Fences)
//	}
//
// The suite holds for stores a network away whose clocks tick in seconds. It
// waits for events and asserts no upper bound on time below a minute, and it
// lets a store be late, or lose news, where store.go does. It does take the
// store to be up: calls must not fail.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// Capability is something that a store may be able to do.
type Capability int

const (
	// Fences says that no create is applied under a session that has ended.
	// (That Session.Fence stops creates on their way can only be tested where
	// they can be held up on it.)
	Fences Capability = iota + 1

	// AnnouncesSessions says that the ends of sessions are events, so that
	// FollowSessions reports them.
	AnnouncesSessions
)

// Run checks a store against every promise, each in a parallel subtest. For
// each it calls open, which returns what opens the stores of several gateways
// on the same data. The suite closes what that returns. The subtests may share
// one server: the suite never uses a key twice.
//
// The first subtest is not parallel. It looks for goroutines left behind, and
// so the test that calls Run must not be parallel to others.
func Run(t *testing.T, open func(t *testing.T) func() replicated.Store, can ...Capability) {
	t.Run(noGoroutines.name, func(t *testing.T) { noGoroutines.check(t, open(t), patience) })
	for _, p := range promises(can...) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.check(t, open(t), patience)
		})
	}
}

// patience is how long an event that must happen may take, beyond the time
// that the store is known to need.
const patience = time.Minute

// promise is one promise of store.go and the test of it.
type promise struct {
	name string
	text string // what store.go says
	test func(s *subject)
}

// promises returns the promises of a store with some capabilities.
func promises(can ...Capability) (all []promise) {
	lists := [][]promise{
		recordPromises, keyPromises, racePromises, gatewayPromises, followPromises,
		sessionPromises, listPromises, expiringPromises, contextPromises, closePromises,
	}
	for _, c := range can {
		switch c {
		case Fences:
			lists = append(lists, fencePromises)
		case AnnouncesSessions:
			lists = append(lists, announcementPromises)
		}
	}
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// reporter is the part of *testing.T that the suite reports to; the suite's
// own tests put something else there, to see broken stores fail.
type reporter interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// check tests the promise.
func (p promise) check(t reporter, open func() replicated.Store, patience time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &subject{reporter: t, promise: p, ctx: ctx, open: open, patience: patience}
	t.Cleanup(cancel) // after the stores are closed, which must not need it
	s.gateway = s.another()
	p.test(s)
}
