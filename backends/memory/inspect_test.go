package memory

import (
	"fmt"
	"testing"

	"github.com/lockgateway/lockgateway/lock"
)

// A look at a lock with very many holders must not keep others out of its shard for
// long.
func TestInspectLeavesOutHoldersBeyondABound(t *testing.T) {
	b := New(Options{})
	defer func() { _ = b.Close() }()
	key, err := lock.ParseKey("20000/a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range walked + 5 {
		if res, err := b.Acquire(t.Context(), lock.AcquireRequest{Key: key, Holder: fmt.Sprint(i)}); err != nil || !res.Acquired {
			t.Fatalf("acquire gave %+v, %v", res, err)
		}
	}
	d, err := b.Inspect(t.Context(), key)
	if err != nil || d.Held != walked+5 || d.Anonymous != 0 || len(d.Holders) != walked {
		t.Errorf("of %d held, %d without a name, %d are shown: %v", d.Held, d.Anonymous, len(d.Holders), err)
	}
	for i := 1; i < len(d.Holders); i++ {
		if d.Holders[i-1].Token >= d.Holders[i].Token {
			t.Fatal("the holders are not in the order of their tokens")
		}
	}
}
