package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

var followPromises = []promise{
	{"FollowBeginsWithMissed", "once it has begun to follow, Follow reports Event.Missed", func(s *subject) {
		k := key()
		s.follow(s.gateway, k).missed()
		s.create(s.gateway, k, "a")
		s.follow(s.another(), k).missed()
	}},
	{"FollowTellsOfChanges", "Follow reports the changes of a record, whoever makes them, as they are", func(s *subject) {
		a, b := s.gateway, s.another()
		k := key()
		f, g := s.follow(a, k), s.follow(b, k)
		f.missed()
		g.missed()
		w := s.writer(a, k)
		f.hears(w)
		g.hears(w)
		w.gateway = b
		f.hears(w)
		g.hears(w)
	}},
	{"FollowTellsOfItsRecordOnly", "Follow reports changes of one record, and not of one whose key is like its", func(s *subject) {
		for _, c := range []struct{ followed, other string }{
			{"", "x"}, {"", " "}, {"", "/x"}, {"", ".x"}, {"x", ""}, {"/", "/x"},
			{".*", ".x"}, {".>", ".x.y"}, {"*", "x"}, {"%78", "x"}, {"x", "X"},
		} {
			k := key()
			w := s.writer(s.gateway, k+c.followed)
			f := s.follow(s.gateway, k+c.followed)
			f.missed()
			s.create(s.gateway, k+c.other, "another record")
			f.hears(w)
		}
	}},
	{"FollowCallsDoNotOverlap", "calls of notify do not overlap", func(s *subject) {
		const clients, each = 8, 10
		w := s.writer(s.gateway, key())
		f := s.follow(s.gateway, w.key)
		f.missed()
		gateways := []*gateway{s.gateway, s.another()}
		var results [clients][each]replicated.SwapResult
		s.concurrently(clients, func(s *subject, n int) {
			var e replicated.Entry
			for i := range each {
				res := s.swap(gateways[n%2], replicated.Swap{Key: w.key, Expect: e.Revision, Value: []byte("a")})
				e, results[n][i] = res.Entry, res
			}
		})
		for _, of := range results {
			for _, res := range of {
				if res.Applied {
					w.wrote(replicated.Entry{Value: []byte("a"), Revision: res.Entry.Revision})
				}
			}
		}
		f.hears(w)
	}},
	{"FollowEndsWithItsContext", "Follow calls notify until its context is done", func(s *subject) {
		k := key()
		ended, other := s.follow(s.gateway, k), s.follow(s.gateway, k)
		ended.missed()
		other.missed()
		w := s.writer(s.another(), k)
		ended.cancel()
		s.quiet(ended.count, func() { other.hears(w) })
	}},
}

// quiet waits until there are no more calls, of which count tells the number,
// though there is news, of which somebody else hears.
func (s *subject) quiet(count func() int, news func()) {
	s.Helper()
	s.eventually("a follow whose context is done is quiet", func() bool {
		before := count()
		for range 5 {
			news()
			s.pass(20*time.Millisecond, func() {}) // so that the wrong call comes, if it does
		}
		return count() == before
	})
}

// follower follows a record.
type follower struct {
	s      *subject
	key    string
	cancel context.CancelFunc
	news   chan struct{} // has capacity 1: events has grown
	heard  int           // how many of events the test has looked at

	inside  atomic.Bool
	overlap atomic.Bool

	mu     sync.Mutex // guards events
	events []replicated.Event
}

func (s *subject) follow(g *gateway, key string) *follower {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	s.Cleanup(cancel)
	f := &follower{s: s, key: key, cancel: cancel, news: make(chan struct{}, 1)}
	_ = s.within("Follow", func() error {
		g.Follow(ctx, key, f.notify)
		return nil
	})
	return f
}

func (f *follower) notify(e replicated.Event) {
	if !f.inside.CompareAndSwap(false, true) {
		f.overlap.Store(true)
		return
	}
	defer f.inside.Store(false)
	runtime.Gosched() // give another call its chance
	f.mu.Lock()
	f.events = append(f.events, e)
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

func (f *follower) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.events)
}

// check looks for calls that overlapped.
func (f *follower) check() {
	f.s.Helper()
	if f.overlap.Load() {
		f.s.broken("calls of notify overlapped")
	}
}

// missed waits for Event.Missed.
func (f *follower) missed() {
	f.s.Helper()
	f.s.eventually("Follow reports that changes may have been missed", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range f.events {
			if e.Missed {
				return true
			}
		}
		return false
	})
	f.check()
}

// writer changes a record again and again.
type writer struct {
	s       *subject
	gateway *gateway
	key     string
	record  replicated.Entry
	written map[uint64]string
}

func (s *subject) writer(g *gateway, key string) *writer {
	return &writer{s: s, gateway: g, key: key, written: make(map[uint64]string)}
}

func (w *writer) write() {
	w.s.Helper()
	value := fmt.Sprintf("change %d of %s", len(w.written)+1, w.key)
	w.wrote(w.s.apply(w.gateway, replicated.Swap{Key: w.key, Expect: w.record.Revision, Value: []byte(value)}))
}

// wrote notes a swap that was applied.
func (w *writer) wrote(e replicated.Entry) {
	w.written[e.Revision] = string(e.Value)
	if e.Revision > w.record.Revision {
		w.record = e
	}
}

// hears writes until the follower has heard of something that was written since
// the call began: stores may lose news now and then.
func (f *follower) hears(w *writer) {
	f.s.Helper()
	since := w.record.Revision
	deadline := time.NewTimer(f.s.patience)
	defer deadline.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	w.write()
	for {
		f.check()
		f.mu.Lock()
		events := f.events[f.heard:]
		f.mu.Unlock()
		for _, e := range events {
			f.heard++
			if e.Missed {
				continue
			}
			if value, ok := w.written[e.Entry.Revision]; !ok || value != string(e.Entry.Value) {
				f.s.broken("the follow of %q reported %s, which was not written", f.key, show(e.Entry))
			}
			if e.Entry.Revision > since {
				return
			}
		}
		select {
		case <-f.news:
		case <-tick.C:
			w.write()
		case <-deadline.C:
			f.s.broken("Follow told of no change within %v", f.s.patience)
		}
	}
}
