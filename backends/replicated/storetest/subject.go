package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// subject is a store under test, with words to test it in.
type subject struct {
	reporter
	*gateway
	promise  promise
	ctx      context.Context
	open     func() replicated.Store
	patience time.Duration
}

// gateway is the store of one gateway, and its session.
type gateway struct {
	replicated.Store
	session replicated.Session
	closed  bool
}

// broken ends the test, saying what was seen and which promise that breaks.
func (s *subject) broken(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s\n\tbroken promise: %s", fmt.Sprintf(format, args...), s.promise.text)
}

// must ends the test if a call failed.
func (s *subject) must(what string, err error) {
	s.Helper()
	if err != nil {
		s.broken("%s failed: %v", what, err)
	}
}

// another opens the store of one more gateway, and a session.
func (s *subject) another() *gateway {
	s.Helper()
	g := &gateway{Store: s.open()}
	s.Cleanup(func() {
		if !g.closed { // by the test
			_ = g.Close()
		}
	})
	g.session = s.openSession(g)
	return g
}

func (s *subject) openSession(g *gateway) replicated.Session {
	s.Helper()
	session, err := g.OpenSession(s.ctx, "")
	s.must("opening a session", err)
	return session
}

// close closes the store of a gateway.
func (s *subject) close(g *gateway) {
	s.Helper()
	g.closed = true
	s.must("closing", s.within("closing", g.Close))
}

// key returns a key that no test uses twice.
func key() string { return rand.Text() }

// swap carries out a swap that must not fail.
func (s *subject) swap(g *gateway, w replicated.Swap) replicated.SwapResult {
	s.Helper()
	if w.Session == nil {
		w.Session = g.session
	}
	res, err := g.Swap(s.ctx, w)
	if err != nil {
		s.broken("the swap of %.50q failed: %v", w.Key, err)
	}
	return res
}

// apply carries out a swap that must be applied, and returns the new record.
func (s *subject) apply(g *gateway, w replicated.Swap) replicated.Entry {
	s.Helper()
	res := s.swap(g, w)
	if !res.Applied {
		s.broken("the swap of %.50q at its revision %d was refused; the record is said to have %d", w.Key, w.Expect, res.Entry.Revision)
	}
	if res.Entry.Revision <= w.Expect || res.Entry.Value != nil {
		s.broken("the swap of %.50q at revision %d gave revision %d and a value of %d bytes; want a greater revision, no value",
			w.Key, w.Expect, res.Entry.Revision, len(res.Entry.Value))
	}
	return replicated.Entry{Value: w.Value, Revision: res.Entry.Revision}
}

// create makes a record.
func (s *subject) create(g *gateway, key, value string) replicated.Entry {
	s.Helper()
	return s.apply(g, replicated.Swap{Key: key, Value: []byte(value)})
}

// refuse carries out a swap that must be refused because the record is
// another. Stores that are not linearizable may name an old one first.
func (s *subject) refuse(g *gateway, w replicated.Swap, record replicated.Entry) {
	s.Helper()
	s.shows(g, record, func() replicated.Entry {
		s.Helper()
		res := s.swap(g, w)
		if res.Applied {
			s.broken("the swap of %.50q at revision %d was applied; the record had %d", w.Key, w.Expect, record.Revision)
		}
		return res.Entry
	})
}

// reads checks what a record is.
func (s *subject) reads(g *gateway, key string, record replicated.Entry) {
	s.Helper()
	s.shows(g, record, func() replicated.Entry {
		s.Helper()
		e, err := g.Get(s.ctx, key)
		s.must("get", err)
		return e
	})
}

// shows checks that a look at a record shows it as it is: at once if the store
// is linearizable, or else in the end.
func (s *subject) shows(g *gateway, record replicated.Entry, look func() replicated.Entry) {
	s.Helper()
	e := look()
	if g.Linearizable() && !same(e, record) {
		s.broken("the store showed %s; want %s", show(e), show(record))
	}
	if !same(e, record) {
		s.eventually("the store shows "+show(record), func() bool { return same(look(), record) })
	}
}

func same(a, b replicated.Entry) bool {
	return a.Revision == b.Revision && bytes.Equal(a.Value, b.Value)
}

func show(e replicated.Entry) string {
	if e.Revision == 0 && len(e.Value) == 0 {
		return "no record"
	}
	return fmt.Sprintf("the value %.50q (%d bytes) at revision %d", e.Value, len(e.Value), e.Revision)
}

// notApplied checks an error that says that a swap never happens.
func (s *subject) notApplied(err error, why error) {
	s.Helper()
	if !errors.Is(err, replicated.ErrNotApplied) || !errors.Is(err, why) {
		s.broken("the swap gave the error %v; want one that wraps %q and %q", err, replicated.ErrNotApplied, why)
	}
}

// eventually waits until ok holds; what says what is waited for. It is for what
// stores announce to nobody.
func (s *subject) eventually(what string, ok func() bool) {
	s.Helper()
	s.eventuallyIn(s.patience, what, ok)
}

func (s *subject) eventuallyIn(patience time.Duration, what string, ok func() bool) {
	s.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; !ok(); n++ {
		if n < 10 { // fast stores are there in less than a tick
			runtime.Gosched()
			continue
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			s.broken("%s: not after %v", what, patience)
		}
	}
}

// pass lets time pass, which is no synchronisation: tests that use it watch
// that something does not happen meanwhile.
func (s *subject) pass(d time.Duration, meanwhile func()) {
	s.Helper()
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(max(d/20, time.Millisecond))
	defer tick.Stop()
	for {
		meanwhile()
		select {
		case <-tick.C:
		case <-end.C:
			return
		}
	}
}

// within checks that a call returns, and returns its error. A call that does
// not leaves a goroutine behind, which ends with it.
func (s *subject) within(what string, call func() error) error {
	s.Helper()
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = call()
	}()
	s.closes(what+" returns", done)
	return err
}

// closes waits until a channel is closed.
func (s *subject) closes(what string, c <-chan struct{}) {
	s.Helper()
	timeout := time.NewTimer(s.patience)
	defer timeout.Stop()
	select {
	case <-c:
	case <-timeout.C:
		s.broken("%s: not after %v", what, s.patience)
	}
}
