package hostile_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
)

func TestCallsOfACutGatewayHang(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		other := open(t, c)
		c.Cut(g.Store)
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := g.swap(ctx, "k", 0, "cut off")
		doubtful(t, err)
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("the swap took %v; want %v", took, time.Minute)
		}
		if _, err := g.Get(ctx, "k"); err == nil {
			t.Error("a read succeeded")
		}
		time.Sleep(time.Hour)
		has(t, c, "k", "") // it was never sent
		other.write(t, "k", 0, "a")
		c.Heal(g.Store)
		if e, err := g.Get(t.Context(), "k"); err != nil || string(e.Value) != "a" {
			t.Errorf("Get gave %+v, error %v", e, err)
		}
	})
}

func TestCloseFreesCallsOfACutGateway(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		c.Cut(g.Store)
		done := make(chan struct{})
		go func() { // ends with the store
			defer close(done)
			_, err := g.Get(t.Context(), "k")
			if err == nil {
				t.Error("a read succeeded")
			}
		}()
		synctest.Wait()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		<-done
	})
}

// Of the swaps that were on their way some arrive; some had arrived.
func TestSwapsUnderWayAtACut(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		const swaps = 60
		c.SetFaults(hostile.Faults{Delay: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		failed := make(chan bool, swaps)
		for n := range swaps {
			go func() { // ends with the context
				_, err := g.swap(ctx, fmt.Sprint(n), 0, "a")
				failed <- err != nil
			}()
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		c.Cut(g.Store)
		unknown := 0
		for range swaps {
			if <-failed {
				unknown++
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := c.Counts().Records; n <= swaps-unknown || n == swaps {
			t.Errorf("%d of %d swaps failed, and %d were applied; want some of those that failed", unknown, swaps, n)
		}
	})
}

func TestSessionOfACutGateway(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		observer := open(t, c)
		c.Cut(g.Store)
		time.Sleep(g.SessionTTL() - 1)
		c.Heal(g.Store)
		time.Sleep(time.Hour)
		if observer.sessionEnded(t, g.session) || isDone(g.session) {
			t.Fatal("a session ended though the cut was short")
		}
		c.Cut(g.Store)
		time.Sleep(g.SessionTTL())
		synctest.Wait()
		c.Heal(g.Store)
		if !observer.sessionEnded(t, g.session) || !isDone(g.session) {
			t.Error("a session outlived a long cut")
		}
	})
}

func TestNewsOfACutGateway(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		other := open(t, c)
		var before, during events
		g.Follow(t.Context(), "k", before.notify)
		synctest.Wait()
		c.Cut(g.Store)
		g.Follow(t.Context(), "k", during.notify)
		revision := other.write(t, "k", 0, "a")
		synctest.Wait()
		if len(before) != 1 || len(during) != 0 {
			t.Errorf("news during the cut: %+v, %+v", before, during)
		}
		c.Heal(g.Store)
		synctest.Wait()
		if before.missed() != 2 || during.missed() != 1 {
			t.Errorf("the gap was not reported: %+v, %+v", before, during)
		}
		other.write(t, "k", revision, "b")
		synctest.Wait()
		if len(before.values()) != 1 || len(during.values()) != 1 {
			t.Errorf("no news after the cut: %+v, %+v", before, during)
		}
	})
}
