package hostile_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
)

// changes is how many changes a test of events makes.
const changes = 40

// watch follows a record, makes changes, and returns what was reported.
func watch(t *testing.T, g *gateway) events {
	t.Helper()
	var news events
	g.Follow(t.Context(), "k", news.notify)
	time.Sleep(time.Hour) // until it has begun
	synctest.Wait()
	if len(news) != 1 || news.missed() != 1 {
		t.Fatalf("the follow began with %+v", news)
	}
	revision := uint64(0)
	for n := range changes {
		revision = g.write(t, "k", revision, strconv.Itoa(n))
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	return news
}

func TestEventsInOrderWithoutFaults(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, _ *hostile.Cluster, g *gateway) {
		news := watch(t, g)
		values := news.values()
		for n, value := range values {
			if value != strconv.Itoa(n) {
				t.Fatalf("event %d has the value %s", n, value)
			}
		}
		if len(values) != changes {
			t.Errorf("%d events of %d changes", len(values), changes)
		}
	})
}

func TestEventFaults(t *testing.T) {
	distinct := func(values []string) int {
		return len(slices.Compact(slices.Sorted(slices.Values(values))))
	}
	for _, f := range []struct {
		name   string
		faults hostile.Faults
		ok     func(values []string, missed int) bool
	}{
		{"late and out of order", hostile.Faults{EventDelay: time.Second}, func(values []string, missed int) bool {
			return distinct(values) == changes && missed == 1 &&
				!slices.IsSortedFunc(values, func(a, b string) int { x, _ := strconv.Atoi(a); y, _ := strconv.Atoi(b); return x - y })
		}},
		{"doubled", hostile.Faults{EventDouble: 0.5}, func(values []string, missed int) bool {
			return distinct(values) == changes && len(values) > changes && missed == 1
		}},
		{"lost", hostile.Faults{EventLoss: 0.5}, func(values []string, missed int) bool {
			return len(values) > 0 && len(values) < changes && missed == 1
		}},
		{"missed", hostile.Faults{EventGap: 0.5}, func(values []string, missed int) bool {
			return len(values) < changes && len(values)+missed == changes+1
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			both(t, f.faults, func(t *testing.T, _ *hostile.Cluster, g *gateway) {
				news := watch(t, g)
				if !f.ok(news.values(), news.missed()) {
					t.Errorf("%d changes were reported as %v, and %d times as missed", changes, news.values(), news.missed())
				}
			})
		})
	}
}

func TestFollowIsCountedUntilItEnds(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			g.Follow(ctx, "k", func(replicated.Event) {})
		}
		g.Follow(t.Context(), "k", func(replicated.Event) {})
		if n := c.Counts().Follows; n != 4 {
			t.Errorf("%d follows; want 4", n)
		}
		cancel()
		synctest.Wait()
		if n := c.Counts().Follows; n != 1 {
			t.Errorf("%d follows; want 1", n)
		}
		if err := g.Close(); err != nil || c.Counts().Follows != 0 {
			t.Errorf("follows outlive their store, error %v", err)
		}
	})
}

func TestForgottenRecordIsReportedAsMissed(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		g.write(t, "k", 0, "a")
		var news events
		g.Follow(t.Context(), "k", news.notify)
		synctest.Wait()
		c.Forget("k")
		c.Forget("k") // which is no news
		synctest.Wait()
		if len(news) != 2 || news.missed() != 2 {
			t.Errorf("the follow reported %+v; want twice that changes were missed", news)
		}
	})
}
