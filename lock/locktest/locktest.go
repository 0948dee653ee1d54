// Package locktest is the conformance suite of lock backends. It states every
// promise of the contract (docs/api.md) as a test; a backend's own tests call
// Run, and a failure says which promise is broken:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) lock.Backend { return mybackend.New() })
//	}
//
// The suite holds for backends that answer in a millisecond or more as well as
// for those that answer at once. It waits for events and asserts no upper
// bound on time, so that it passes on a slow machine.
package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// Run checks a backend against every promise, each in a parallel subtest with
// a backend of its own from open. The suite closes what open returns. The
// backends may share one store: the suite never uses a key twice.
func Run(t *testing.T, open func(t *testing.T) lock.Backend) {
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.check(t, func() lock.Backend { return open(t) }, 3*time.Minute)
		})
	}
}

// promise is one promise of the contract and the test of it.
type promise struct {
	name string
	text string // what the contract says
	test func(s *subject)
}

var promises = concat(
	countingPromises,
	queuePromises,
	holderPromises,
	ttlPromises,
	giveBackPromises,
	shutdownPromises,
	racePromises,
	historyPromises,
)

func concat(lists ...[]promise) (all []promise) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// reporter is the part of *testing.T that the suite reports to; the suite's
// own tests put something else there, to see broken backends fail.
type reporter interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// check tests the promise. Patience is how long an event that must happen may
// take.
func (p promise) check(t reporter, open func() lock.Backend, patience time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	b := open()
	t.Cleanup(func() {
		cancel()
		_ = b.Close() // a second close, where the promise is about closing, may say so
	})
	p.test(&subject{reporter: t, Backend: b, promise: p, ctx: ctx, patience: patience})
}
