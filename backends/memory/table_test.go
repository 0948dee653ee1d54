package memory

import (
	"hash/maphash"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestTableFindsWhatWasAddedAndNotRemoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := maphash.MakeSeed()
		tab := newTable(seed)
		want := make(map[string]*semaphore)
		grow, shrink := rapid.IntRange(1, 300).Draw(t, "grow"), rapid.IntRange(1, 7).Draw(t, "shrink")
		check := func() {
			found := 0
			for s := range tab.all {
				if want[s.name] != s {
					t.Fatalf("%q is listed and was removed, or never added", s.name)
				}
				found++
			}
			if found != len(want) || tab.len != len(want) {
				t.Fatalf("%d are listed and %d counted; want %d", found, tab.len, len(want))
			}
			for n := range grow {
				name := strconv.Itoa(n)
				if got := tab.find(maphash.String(seed, name), name); got != want[name] {
					t.Fatalf("%q was found to be %p; want %p", name, got, want[name])
				}
			}
		}
		for n := range grow {
			s := &semaphore{name: strconv.Itoa(n)}
			want[s.name] = s
			tab.add(maphash.String(seed, s.name), s)
		}
		check()
		for n := range grow {
			if s := want[strconv.Itoa(n)]; n%8 < shrink {
				tab.remove(s)
				delete(want, s.name)
			}
		}
		check()
		for _, s := range want {
			tab.remove(s)
			delete(want, s.name)
		}
		check()
		if len(tab.buckets) != leastBuckets {
			t.Fatalf("the empty table has %d buckets; want %d", len(tab.buckets), leastBuckets)
		}
	})
}
