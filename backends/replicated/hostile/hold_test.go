package hostile_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
)

func of(key string) func(replicated.Swap) bool {
	return func(s replicated.Swap) bool { return s.Key == key }
}

// answer is what a caller of Swap got.
type answer struct {
	res replicated.SwapResult
	err error
}

// begin starts a create of "k", which the returned hold catches.
func begin(ctx context.Context, c *hostile.Cluster, g *gateway) (*hostile.Held, chan answer) {
	h := c.Hold(of("k"))
	got := make(chan answer, 1)
	go func() { // ends with the swap
		res, err := g.swap(ctx, "k", 0, "held")
		got <- answer{res, err}
	}()
	<-h.Caught()
	return h, got
}

func TestHeldSwapIsReleasedAsTheTestSays(t *testing.T) {
	for _, c := range []struct {
		name         string
		apply, reply bool
		check        func(t *testing.T, a answer)
		want         string
	}{
		{"applied, and the caller told", true, true, func(t *testing.T, a answer) {
			t.Helper()
			if a.err != nil || !a.res.Applied {
				t.Errorf("the caller got %+v", a)
			}
		}, "held"},
		{"applied, and the caller not told", true, false, func(t *testing.T, a answer) { t.Helper(); doubtful(t, a.err) }, "held"},
		{"not applied, and the caller told", false, true, func(t *testing.T, a answer) { t.Helper(); certain(t, a.err) }, ""},
		{"not applied, and the caller not told", false, false, func(t *testing.T, a answer) { t.Helper(); doubtful(t, a.err) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, hostile.Faults{Lose: 0.5, DropReply: 0.5, SessionLoss: 1}, func(t *testing.T, cluster *hostile.Cluster, g *gateway) {
				h, got := begin(t.Context(), cluster, g)
				if s := h.Swap(); s.Key != "k" || s.Session.ID() != g.session.ID() {
					t.Errorf("the swap is %+v", s)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				select {
				case a := <-got:
					t.Fatalf("the caller got %+v from a swap that is held", a)
				default:
				}
				has(t, cluster, "k", "")
				h.Release(c.apply, c.reply)
				c.check(t, <-got)
				has(t, cluster, "k", c.want)
				h.Release(true, true) // nothing is held any more
				has(t, cluster, "k", c.want)
			})
		})
	}
}

func TestHeldSwapOutlivesItsCaller(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h, got := begin(ctx, c, g)
		doubtful(t, (<-got).err)
		h.Release(true, true)
		has(t, c, "k", "held")
	})
}

func TestLostHeldSwapIsAppliedLate(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		h, got := begin(t.Context(), c, g)
		h.Lose()
		doubtful(t, (<-got).err)
		has(t, c, "k", "")
		h.Release(true, false)
		has(t, c, "k", "held")
	})
}

func TestHeldSwapIsRefusedAtAnotherRevision(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		h, got := begin(t.Context(), c, g)
		now := g.write(t, "k", 0, "first")
		h.Release(true, true)
		if a := <-got; a.err != nil || a.res.Applied || a.res.Entry.Revision != now {
			t.Errorf("the caller got %+v; want the record at %d", a, now)
		}
	})
}

// Fence is there for creates that are still on their way.
func TestFenceStopsHeldCreates(t *testing.T) {
	bubble(t, hostile.Config{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		h, got := begin(t.Context(), c, g)
		if err := g.session.Fence(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.Release(true, true)
		certain(t, (<-got).err)
		has(t, c, "k", "")
		g.write(t, "k", 0, "after")
	})
}

func TestReleasedHoldCatchesNothing(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		c.Hold(of("k")).Release(true, true)
		g.write(t, "k", 0, "a")
		c.Hold(of("other"))
		g.write(t, "k2", 0, "a")
	})
}
