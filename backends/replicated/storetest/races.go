package storetest

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// contenders is how many swaps race for one record.
const contenders = 16

var racePromises = []promise{
	{"OneOfManyCreatesIsApplied", "a swap is one step: of many that expect no record, one is applied", func(s *subject) {
		s.race(func(string) replicated.Entry { return replicated.Entry{} })
	}},
	{"OneOfManySwapsIsApplied", "a swap is one step: of many at one revision, one is applied", func(s *subject) {
		s.race(func(k string) replicated.Entry { return s.create(s.gateway, k, "start") })
	}},
	{"CounterLosesNothing", "records change by swaps only, so that a counter of the swaps that were applied is right", func(s *subject) {
		const each = 10
		k := key()
		e := s.create(s.gateway, k, "0 by nobody")
		gateways := []*gateway{s.gateway, s.another()}
		s.concurrently(4, func(s *subject, n int) {
			e := e
			for range each {
				for s.ctx.Err() == nil {
					count := counted(s, e)
					next := fmt.Appendf(nil, "%d by %d", count+1, n)
					res := s.swap(gateways[n%2], replicated.Swap{Key: k, Expect: e.Revision, Value: next})
					if res.Applied {
						e = replicated.Entry{Value: next, Revision: res.Entry.Revision}
						break
					}
					if res.Entry.Revision != 0 { // an old look may be from before the create
						e = res.Entry
					}
				}
			}
		})
		for _, g := range gateways {
			s.eventually("the counter shows every swap", func() bool {
				e, err := g.Get(s.ctx, k)
				s.must("get", err)
				return counted(s, e) == 4*each
			})
		}
	}},
}

// counted returns the number in a record of the counter. It has the writer's, too,
// as no two swaps may have the same value.
func counted(s *subject, e replicated.Entry) int {
	s.Helper()
	number, _, _ := strings.Cut(string(e.Value), " ")
	count, err := strconv.Atoi(number)
	s.must("reading the counter", err)
	return count
}

// race lets swaps race for the record that start makes.
func (s *subject) race(start func(k string) replicated.Entry) {
	s.Helper()
	gateways := []*gateway{s.gateway, s.another()}
	for range 5 {
		k := key()
		expect := start(k).Revision
		var results [contenders]replicated.SwapResult
		s.concurrently(contenders, func(s *subject, n int) {
			results[n] = s.swap(gateways[n%2], replicated.Swap{Key: k, Expect: expect, Value: fmt.Append(nil, n)})
		})
		applied := 0
		var winner replicated.Entry
		for n, res := range results {
			if res.Applied {
				applied++
				winner = replicated.Entry{Value: fmt.Append(nil, n), Revision: res.Entry.Revision}
			}
		}
		if applied != 1 {
			s.broken("of %d swaps at one revision %d were applied", contenders, applied)
		}
		for _, res := range results {
			if s.Linearizable() && !res.Applied && !same(res.Entry, winner) {
				s.broken("a swap was refused because of %s; the record was %s", show(res.Entry), show(winner))
			}
		}
		s.reads(s.gateway, k, winner)
	}
}

// concurrently calls do n times at once and waits for all. Their context ends
// when that takes too long.
func (s *subject) concurrently(n int, do func(s *subject, n int)) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	relays := make([]relay, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range relays {
		relays[i].reporter = s.reporter
		s := *s
		s.reporter, s.ctx = &relays[i], ctx
		wg.Go(func() {
			<-start
			do(&s, i)
		})
	}
	close(start)
	wg.Wait()
	for _, r := range relays {
		if r.failure != "" {
			s.Fatalf("%s", r.failure)
		}
	}
}

// relay keeps the failure of a goroutine for the one that runs the test, which
// alone may report it.
type relay struct {
	reporter
	failure string
}

func (r *relay) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
