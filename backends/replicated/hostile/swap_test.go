package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
)

func TestRefusedCallsSayThatNothingHappened(t *testing.T) {
	both(t, hostile.Faults{Refuse: 1}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		_, err := g.swap(t.Context(), "k", 0, "a")
		certain(t, err)
		if _, err := g.Get(t.Context(), "k"); err == nil {
			t.Error("the read succeeded")
		}
		time.Sleep(time.Hour)
		has(t, c, "k", "")
	})
}

func TestLostSwapsAreInDoubtAndNeverHappen(t *testing.T) {
	both(t, hostile.Faults{Lose: 1, LateBy: time.Second}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		_, err := g.swap(t.Context(), "k", 0, "a")
		doubtful(t, err)
		time.Sleep(time.Hour)
		has(t, c, "k", "")
	})
}

func TestDroppedRepliesAreInDoubtAndHappened(t *testing.T) {
	both(t, hostile.Faults{DropReply: 1}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		timeouts := 0
		for n := range 50 {
			k := fmt.Sprint(n)
			_, err := g.swap(t.Context(), k, 0, "a")
			doubtful(t, err)
			has(t, c, k, "a")
			if errors.Is(err, context.DeadlineExceeded) {
				timeouts++
			}
		}
		if timeouts == 0 || timeouts == 50 {
			t.Errorf("%d of 50 replies were given up for the time; want both kinds of errors", timeouts)
		}
	})
}

func TestLateSwaps(t *testing.T) {
	faults := hostile.Faults{Late: 1, LateBy: 10 * time.Second}
	for _, c := range []struct {
		name      string
		meanwhile func(t *testing.T, c *hostile.Cluster, g *gateway)
		want      string // the records of created and changed in the end
	}{
		{"are applied long after", func(*testing.T, *hostile.Cluster, *gateway) {}, "late late"},
		{"are refused at another revision", func(_ *testing.T, c *hostile.Cluster, _ *gateway) {
			c.Put("created", []byte("new"))
			c.Put("changed", []byte("new"))
		}, "new new"},
		{"find no record when it has been deleted", func(_ *testing.T, c *hostile.Cluster, _ *gateway) {
			c.Put("created", []byte("new"))
			c.Forget("created")
			c.Forget("changed")
		}, "late "},
		{"create nothing once fenced", func(t *testing.T, _ *hostile.Cluster, g *gateway) {
			if err := g.session.Fence(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, " late"},
		{"create nothing once their session ended", func(_ *testing.T, c *hostile.Cluster, g *gateway) {
			c.EndSessions(g.Store)
		}, " late"},
		{"do not outlive an epoch", func(_ *testing.T, c *hostile.Cluster, _ *gateway) {
			c.Restore(c.Snapshot())
		}, " old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, hostile.Config{}, func(t *testing.T, cluster *hostile.Cluster, g *gateway) {
				old := g.write(t, "changed", 0, "old")
				cluster.SetFaults(faults)
				_, err := g.swap(t.Context(), "created", 0, "late")
				doubtful(t, err)
				_, err = g.swap(t.Context(), "changed", old, "late")
				doubtful(t, err)
				has(t, cluster, "created", "")
				has(t, cluster, "changed", "old")
				if n := cluster.Counts().Late; n != 2 {
					t.Fatalf("%d swaps are late; want 2", n)
				}
				cluster.SetFaults(hostile.Faults{})
				c.meanwhile(t, cluster, g)
				time.Sleep(faults.LateBy)
				synctest.Wait()
				created, changed := cluster.Record("created"), cluster.Record("changed")
				if got := fmt.Sprintf("%s %s", created.Value, changed.Value); got != c.want {
					t.Errorf("the records are %q; want %q", got, c.want)
				}
				if n := cluster.Counts().Late; n != 0 {
					t.Errorf("%d swaps are late in the end", n)
				}
			})
		})
	}
}

// Loose stores cannot fence: late creates come whatever the session.
func TestLateCreatesOfLooseStoresAreNotFenced(t *testing.T) {
	bubble(t, hostile.Config{Kind: hostile.Loose}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		c.SetFaults(hostile.Faults{Late: 1, LateBy: time.Second})
		_, err := g.swap(t.Context(), "k", 0, "late")
		doubtful(t, err)
		c.SetFaults(hostile.Faults{})
		if err := g.session.Fence(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.EndSessions(g.Store)
		time.Sleep(time.Second)
		synctest.Wait()
		has(t, c, "k", "late")
	})
}

func TestCallersThatLeaveDoNotKnow(t *testing.T) {
	both(t, hostile.Faults{Delay: time.Minute, LateBy: time.Second}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		const swaps = 50
		var atOnce []string
		for n := range swaps {
			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			k := fmt.Sprint(n)
			_, err := g.swap(ctx, k, 0, "a")
			cancel()
			doubtful(t, err)
			if c.Record(k).Revision != 0 {
				atOnce = append(atOnce, k)
			}
		}
		time.Sleep(time.Minute)
		if n := c.Counts().Records; n == 0 || n == swaps {
			t.Errorf("%d of %d swaps were carried out, of which %d before their callers left; want some, not all", n, swaps, len(atOnce))
		}
	})
}

func TestDelayIsBounded(t *testing.T) {
	const delay = 100 * time.Millisecond
	both(t, hostile.Faults{Delay: delay}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		var times []time.Duration
		for n := range 50 {
			begun := time.Now()
			g.write(t, fmt.Sprint(n), 0, "a")
			times = append(times, time.Since(begun))
		}
		slices.Sort(times)
		if times[0] == times[49] || times[49] > 2*delay {
			t.Errorf("swaps took from %v to %v; want various times up to %v", times[0], times[49], 2*delay)
		}
		if n := c.Counts().Strikes; n != 0 {
			t.Errorf("delays count as %d faults", n)
		}
	})
}

func TestBudgetEndsTheFaults(t *testing.T) {
	both(t, hostile.Faults{Refuse: 1, Budget: 3}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		for range 3 {
			_, err := g.swap(t.Context(), "k", 0, "a")
			certain(t, err)
		}
		g.write(t, "k", 0, "b")
		if n := c.Counts(); n.Strikes != 3 || n.Applied != 1 || n.Swaps != 4 || n.Refused != 0 {
			t.Errorf("the counts are %+v", n)
		}
	})
}

// The faults of a gateway come from the seed and its own calls.
func TestSeedBringsFaultsBack(t *testing.T) {
	history := func(others int) (outcomes []string) {
		config := hostile.Config{Seed: 42, Faults: hostile.Storm(), Kind: hostile.Loose}
		bubble(t, config, func(t *testing.T, c *hostile.Cluster, g *gateway) {
			other := open(t, c)
			for n := range 100 {
				_, err := g.swap(t.Context(), fmt.Sprint(n), 0, "a")
				for range others {
					_, _ = other.Get(t.Context(), "k")
				}
				outcomes = append(outcomes, fmt.Sprint(err))
			}
		})
		return outcomes
	}
	alone, again, together := history(0), history(0), history(3)
	if !slices.Equal(alone, again) || !slices.Equal(alone, together) {
		t.Errorf("one seed gave\n%v\n%v\n%v", alone, again, together)
	}
	if !slices.ContainsFunc(alone, func(s string) bool { return s != "<nil>" }) {
		t.Error("no fault struck")
	}
}
