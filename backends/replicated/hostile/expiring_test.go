package hostile_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
)

func TestKeysExpireLateAndNeverEarly(t *testing.T) {
	const late = time.Minute
	both(t, hostile.Faults{ExpireLate: late, Stale: 1}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		x := g.newExpiring(t, time.Second)
		if x.TTL < time.Second {
			t.Errorf("a TTL of 1 s became %v", x.TTL)
		}
		g.write(t, "k", 0, "a", x)
		end := time.Now().Add(x.TTL)
		less := false
		for time.Now().Before(end) {
			left := g.remaining(t, x)
			if left <= 0 || left > time.Until(end) {
				t.Fatalf("%v left of %v", left, time.Until(end))
			}
			less = less || left < time.Until(end)
			time.Sleep(10 * time.Millisecond)
		}
		if less == g.Linearizable() {
			t.Errorf("a key has less left than it has: %t", less)
		}
		if n := c.Counts().Expiring; n != 1 {
			t.Errorf("%d keys live; want one that is late", n)
		}
		time.Sleep(late)
		if left := g.remaining(t, x); left != 0 || c.Counts().Expiring != 0 {
			t.Errorf("%v left of a key that is long over", left)
		}
		if err := g.Restart(t.Context(), x); !errors.Is(err, replicated.ErrExpired) {
			t.Errorf("Restart gave the error %v", err)
		}
	})
}

// Strict stores put keys with the swap, and so cannot put one that is no more.
func TestSwapWithAnExpiredKey(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		x, y := g.newExpiring(t, time.Second), g.newExpiring(t, time.Hour)
		if left := g.remaining(t, y); (left == 0) != g.Linearizable() {
			t.Errorf("%v left of a key that no swap has put", left)
		}
		time.Sleep(x.TTL)
		_, err := g.swap(t.Context(), "k", 0, "a", x, y)
		if !g.Linearizable() {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		certain(t, err)
		if !errors.Is(err, replicated.ErrExpired) || g.remaining(t, y) != 0 {
			t.Errorf("the error is %v", err)
		}
		has(t, c, "k", "")
	})
}

func TestRestartMayHappenUnheard(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		x := g.newExpiring(t, time.Second)
		g.write(t, "k", 0, "a", x)
		time.Sleep(x.TTL / 2)
		c.SetFaults(hostile.Faults{DropReply: 1})
		if err := g.Restart(t.Context(), x); err == nil {
			t.Fatal("the reply was not dropped")
		}
		c.SetFaults(hostile.Faults{})
		if left := g.remaining(t, x); left != x.TTL {
			t.Errorf("%v left; want %v", left, x.TTL)
		}
	})
}

func TestDiscardMayBeLost(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		x := g.newExpiring(t, time.Hour)
		g.write(t, "k", 0, "a", x)
		c.SetFaults(hostile.Faults{Lose: 1})
		g.Discard(x.ID)
		synctest.Wait()
		if n := c.Counts().Expiring; n != 1 {
			t.Errorf("%d keys live; want 1", n)
		}
		c.SetFaults(hostile.Faults{})
		g.Discard(x.ID)
		synctest.Wait()
		if n := c.Counts().Expiring; n != 0 {
			t.Errorf("%d keys live; want none", n)
		}
	})
}
