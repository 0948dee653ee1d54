package caddymodule

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockgateway/lockgateway/backends/memory"
	"github.com/lockgateway/lockgateway/lock"
)

// ask asks for a list of a backend's locks.
func ask(t testing.TB, b *openBackend, parameters url.Values) listJSON {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/?"+parameters.Encode(), http.NoBody)
	if err := r.ParseForm(); err != nil {
		t.Fatal(err)
	}
	a, err := adminLocks(r, b)
	if err != nil {
		t.Fatal(err)
	}
	return a.(listJSON)
}

func manyLocks(t testing.TB, n int) *openBackend {
	t.Helper()
	m := memory.New(memory.Options{})
	t.Cleanup(func() { _ = m.Close() })
	for i := range n {
		key, err := lock.NewKey("1", fmt.Sprintf("lock-%07d", i))
		if err != nil {
			t.Fatal(err)
		}
		if res, err := m.Acquire(context.Background(), lock.AcquireRequest{Key: key}); err != nil || !res.Acquired {
			t.Fatalf("acquire gave %+v, %v", res, err)
		}
	}
	return &openBackend{ID: "memory", instance: &instance{backend: m}, inspector: m}
}

func TestListOfManyLocksTakesLittleMemory(t *testing.T) {
	const locks = 150_000
	b := manyLocks(t, locks)
	for _, sort := range []string{"name", "held", "queue"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := ask(t, b, url.Values{"sort": {sort}})
		runtime.ReadMemStats(&after)
		if a.Matching != locks || len(a.Locks) != defaultListed {
			t.Errorf("sorted by %s, %d of %d locks are listed", sort, len(a.Locks), a.Matching)
		}
		// All that was allocated, most of it garbage soon. A list of all would take a
		// hundred bytes a lock.
		if used := after.TotalAlloc - before.TotalAlloc; used > locks*20 {
			t.Errorf("sorted by %s, the list allocated %d bytes", sort, used)
		} else {
			t.Logf("sorted by %s, the list allocated %d bytes", sort, used)
		}
	}
}

func TestPagesByNameAreTheWholeList(t *testing.T) {
	const locks = 1000
	b := manyLocks(t, locks)
	after, seen := "", []string(nil)
	for pages := 1; ; pages++ {
		a := ask(t, b, url.Values{"limit": {"300"}, "after": {after}})
		for _, l := range a.Locks {
			seen = append(seen, l.Lock)
		}
		if after = a.Next; after == "" {
			if pages != 4 {
				t.Errorf("there are %d pages", pages)
			}
			break
		}
	}
	if len(seen) != locks || !slices.IsSorted(seen) || len(slices.Compact(seen)) != locks {
		t.Errorf("the pages have %d locks, in order: %t", len(seen), slices.IsSorted(seen))
	}
}

// Whatever comes, in whatever order, the listing keeps the first rows of what a list
// of all would have.
func TestListingKeepsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sort := rapid.SampledFrom([]string{"name", "held", "queue"}).Draw(t, "sort")
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		r := &http.Request{Form: url.Values{"sort": {sort}, "limit": {fmt.Sprint(limit)}}}
		q, err := parseListQuery(r)
		if err != nil {
			t.Fatal(err)
		}
		p := listing{query: q, rows: make(map[lock.Key]lock.State)}
		var all []lock.State
		for _, n := range rapid.SliceOfDistinct(rapid.IntRange(0, 50), rapid.ID[int]).Draw(t, "locks") {
			key, err := lock.NewKey("1", fmt.Sprint(n))
			if err != nil {
				t.Fatal(err)
			}
			s := lock.State{Key: key, Waiting: rapid.Int64Range(0, 3).Draw(t, "waiting")}
			if rapid.Bool().Draw(t, "held") {
				s.Held, s.HeldSince = 1, time.Unix(rapid.Int64Range(1, 4).Draw(t, "since"), 0)
			}
			all = append(all, s)
			p.add(s)
			if len(p.rows) > 2*limit {
				t.Fatalf("the listing has %d rows", len(p.rows))
			}
		}
		slices.SortFunc(all, q.order)
		rows, more := p.finish()
		if want := all[:min(limit, len(all))]; !slices.Equal(rows, want) || more != (len(all) > limit) {
			t.Fatalf("the rows are %v, more: %t; want %v of %d", rows, more, want, len(all))
		}
	})
}

func TestHeldSortsOldestFirstAndNoneLast(t *testing.T) {
	old, young := time.Unix(1, 0), time.Unix(2, 0)
	for _, c := range []struct {
		a, b time.Time
		want int
	}{{old, young, -1}, {young, old, 1}, {time.Time{}, old, 1}, {young, time.Time{}, -1}, {old, old, 0}, {time.Time{}, time.Time{}, 0}} {
		if got := oldestFirst(c.a, c.b); got != c.want {
			t.Errorf("oldestFirst(%v, %v) is %d, not %d", c.a, c.b, got, c.want)
		}
	}
}
