package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
)

// Whatever the faults, a cluster keeps to what makes locks safe.
func TestStormKeepsSwapsSafe(t *testing.T) {
	both(t, hostile.Storm(), func(t *testing.T, c *hostile.Cluster, _ *gateway) {
		w := &witness{t: t, linearizable: c.Open().Linearizable(), seen: make(map[uint64]string), never: make(map[string]bool)}
		var wg sync.WaitGroup
		for n := range 4 {
			s := c.Open()
			w.follow(s)
			wg.Go(func() { w.client(s, n) })
		}
		wg.Wait()
		if n := c.Counts(); n.Strikes == 0 || n.Applied == 0 || n.Refused == 0 {
			t.Errorf("the storm was none: %+v", n)
		}
		w.check()
	})
}

// witness notes what gateways are told.
type witness struct {
	t            *testing.T
	linearizable bool

	mu     sync.Mutex // guards the following
	seen   map[uint64]string
	never  map[string]bool // the values of swaps that are said never to happen
	newest [3]uint64       // the greatest revision that was told, by key
}

func stormKey(n int) string { return fmt.Sprint("key ", n) }

// client swaps and reads at random, each value once.
func (w *witness) client(s replicated.Store, n int) {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	var session replicated.Session
	var known [3]uint64
	for op := range 400 {
		ctx, cancel := context.WithTimeout(w.t.Context(), 50*time.Millisecond)
		if session == nil || isDone(session) {
			var err error
			if session, err = s.OpenSession(ctx, ""); err != nil {
				session = nil
				cancel()
				continue
			}
		}
		k := random.IntN(len(known))
		w.mu.Lock()
		newest := w.newest[k]
		w.mu.Unlock()
		var e replicated.Entry
		var err error
		if random.IntN(2) == 0 {
			if e, err = s.Get(ctx, stormKey(k)); err == nil {
				w.read(k, e, newest)
			}
		} else {
			value := fmt.Sprintf("%d of client %d", op, n)
			var res replicated.SwapResult
			res, err = s.Swap(ctx, replicated.Swap{Key: stormKey(k), Expect: known[k], Value: []byte(value), Session: session})
			e = res.Entry
			switch {
			case errors.Is(err, replicated.ErrNotApplied):
				w.mu.Lock()
				w.never[value] = true
				w.mu.Unlock()
			case err == nil && res.Applied:
				w.read(k, replicated.Entry{Value: []byte(value), Revision: e.Revision}, max(newest, known[k]))
			case err == nil:
				w.read(k, e, newest)
				w.mu.Lock()
				w.never[value] = string(e.Value) != value // a refusal may be false, and its record then tells
				w.mu.Unlock()
			}
		}
		if err == nil {
			known[k] = e.Revision
		}
		cancel()
	}
}

// read notes a record that was told by a call that began when newest had been
// told already.
func (w *witness) read(k int, e replicated.Entry, newest uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.linearizable && e.Revision < newest {
		w.t.Errorf("a linearizable store told revision %d of %s after %d", e.Revision, stormKey(k), newest)
	}
	w.note(e)
	w.newest[k] = max(w.newest[k], e.Revision)
}

// note checks that one revision is one record.
func (w *witness) note(e replicated.Entry) {
	if e.Revision == 0 {
		return
	}
	if before, ok := w.seen[e.Revision]; ok && before != string(e.Value) {
		w.t.Errorf("revision %d is %q and %q", e.Revision, before, e.Value)
	}
	w.seen[e.Revision] = string(e.Value)
}

func (w *witness) follow(s replicated.Store) {
	for k := range w.newest {
		s.Follow(w.t.Context(), stormKey(k), func(e replicated.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.note(e.Entry)
		})
	}
}

// check looks for records that should not have been, or were twice.
func (w *witness) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	revisions := make(map[string]uint64)
	for revision, value := range w.seen {
		if w.never[value] {
			w.t.Errorf("the swap of %q happened, which was said never to", value)
		}
		if other, ok := revisions[value]; ok {
			w.t.Errorf("the swap of %q happened twice, at %d and %d", value, revision, other)
		}
		revisions[value] = revision
	}
}
