package integration_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/process"
)

// change is a swap that cannot be applied to a new store.
var change = replicated.Swap{Key: "a", Expect: 7, Value: []byte("a")}

// words are what tests say to a store, whose it may be.
type words struct {
	kv      replicated.Store
	t       *testing.T
	ctx     context.Context
	session replicated.Session // of the swaps, if there is one
}

// newWords gives the words for a store. All of them together have to be said soon.
func newWords(t *testing.T, kv replicated.Store) words {
	ctx, cancel := context.WithTimeout(context.Background(), process.Soon)
	t.Cleanup(cancel)
	return words{kv: kv, t: t, ctx: ctx}
}

func (s words) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s words) create(key string) replicated.Entry {
	s.t.Helper()
	return s.apply(replicated.Swap{Key: key, Value: []byte("created")})
}

func (s words) apply(w replicated.Swap) replicated.Entry {
	s.t.Helper()
	w.Session = s.session
	res, err := s.kv.Swap(s.ctx, w)
	s.must(err)
	if !res.Applied {
		s.t.Fatalf("a swap was refused; the record has the revision %d", res.Entry.Revision)
	}
	return res.Entry
}

func (s words) get(key string) replicated.Entry {
	s.t.Helper()
	e, err := s.kv.Get(s.ctx, key)
	s.must(err)
	return e
}

// swapWithin tries a swap for some time.
func (s words) swapWithin(d time.Duration, w replicated.Swap) (replicated.SwapResult, error) {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	w.Session = s.session
	return s.kv.Swap(ctx, w)
}

// refused checks that a swap certainly did not happen, and that the error tells why.
func (s words) refused(err error, why string) {
	s.t.Helper()
	if !errors.Is(err, replicated.ErrNotApplied) || !strings.Contains(err.Error(), why) {
		s.t.Errorf("the error is %v; want one that says that the swap was not applied, and %q", err, why)
	}
}

// refusesFor repeats a swap that cannot be applied until the error tells why it was
// not: on a slow machine no attempt to connect has ended when the first one gives up.
func (s words) refusesFor(why string) {
	s.t.Helper()
	for {
		_, err := s.swapWithin(500*time.Millisecond, change)
		if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, replicated.ErrNotApplied) && s.ctx.Err() == nil {
			continue // it was sent, and nobody has said yet what became of it
		}
		if !errors.Is(err, replicated.ErrNotApplied) || strings.Contains(err.Error(), why) || s.ctx.Err() != nil {
			s.refused(err, why)
			return
		}
	}
}

// inDoubt checks that an error leaves open what became of a swap.
func (s words) inDoubt(err error) {
	s.t.Helper()
	if err == nil || errors.Is(err, replicated.ErrNotApplied) {
		s.t.Errorf("the error is %v; want one that leaves the outcome open", err)
	}
}

// follow follows a record, and returns the first hundred of its news that are
// not fetched.
func (s words) follow(key string) <-chan replicated.Event {
	news := make(chan replicated.Event, 100)
	s.kv.Follow(s.ctx, key, func(e replicated.Event) {
		select {
		case news <- e:
		default:
		}
	})
	return news
}

// next returns the next event.
func (s words) next(news <-chan replicated.Event) replicated.Event {
	s.t.Helper()
	select {
	case e := <-news:
		return e
	case <-s.ctx.Done():
		s.t.Fatal("Follow tells nothing")
		return replicated.Event{}
	}
}
