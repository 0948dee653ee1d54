package hostile_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
)

func TestStaleReadsStrikeLooseClusters(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		was := map[string]bool{"": true}
		revision := uint64(0)
		for _, value := range []string{"a", "b", "c"} {
			revision = g.write(t, "k", revision, value)
			was[value] = true
		}
		c.SetFaults(hostile.Faults{Stale: 1})
		old := 0
		for range 100 {
			e, err := g.Get(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			res, err := g.swap(t.Context(), "k", 0, "d")
			if err != nil || res.Applied {
				t.Fatalf("the swap gave %+v, error %v", res, err)
			}
			for _, e := range []replicated.Entry{e, res.Entry} {
				if !was[string(e.Value)] {
					t.Fatalf("the record never was %q", e.Value)
				}
				if e.Revision != revision {
					old++
				}
			}
		}
		if (old > 0) == g.Linearizable() {
			t.Errorf("%d of 200 reads were old", old)
		}
	})
}

func TestIdleRecordsAreForgottenLate(t *testing.T) {
	both(t, hostile.Faults{Forget: 1, ForgetAfter: time.Minute}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		swap := func(key string, expect uint64, idle bool) uint64 {
			res, err := g.Swap(t.Context(), replicated.Swap{Key: key, Expect: expect, Value: []byte("a"), Session: g.session, Idle: idle})
			if err != nil || !res.Applied {
				t.Fatalf("the swap gave %+v, error %v", res, err)
			}
			return res.Entry.Revision
		}
		swap("busy", 0, false)
		swap("idle", 0, true)
		swap("busy again", swap("busy again", 0, true), false)
		time.Sleep(time.Minute - 1)
		has(t, c, "idle", "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		has(t, c, "idle", "")
		has(t, c, "busy", "a")
		has(t, c, "busy again", "a")
		swap("idle", 0, false)
	})
}

func TestStrangersPutAndForget(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		last := g.write(t, "k", 0, "a")
		e := c.Put("k", []byte("\xffforeign"))
		got, err := g.Get(t.Context(), "k")
		if err != nil || got.Revision != e.Revision || got.Revision <= last || string(got.Value) != "\xffforeign" {
			t.Errorf("Put gave %+v, Get %+v, error %v", e, got, err)
		}
		c.Forget("k")
		if got, err := g.Get(t.Context(), "k"); err != nil || got.Revision != 0 || got.Value != nil {
			t.Errorf("Get gave %+v, error %v, of a record that was forgotten", got, err)
		}
		if again := g.write(t, "k", 0, "b"); again <= e.Revision {
			t.Errorf("revision %d after %d", again, e.Revision)
		}
	})
}

func TestRestoreGoesBackInTime(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		x := g.newExpiring(t, time.Minute)
		revision := g.write(t, "k", 0, "old", x)
		backup, epoch := c.Snapshot(), g.Epoch()
		var news events
		g.Follow(t.Context(), "k", news.notify)
		synctest.Wait()
		later := openSession(t, g)
		y := g.newExpiring(t, time.Hour)
		g.write(t, "k", revision, "new", y)
		time.Sleep(time.Second)
		synctest.Wait()
		news = nil
		g.Discard(x.ID)
		synctest.Wait()
		held, got := begin(t.Context(), c, g)

		c.Restore(backup)
		has(t, c, "k", "old")
		synctest.Wait()
		if len(news) != 1 || news.missed() != 1 {
			t.Errorf("the restore was announced as %+v; want that changes were missed", news)
		}
		if g.Epoch() == epoch {
			t.Error("the epoch is the same after news of the restored cluster")
		}
		held.Release(true, true)
		certain(t, (<-got).err)
		if g.remaining(t, x) < x.TTL || g.remaining(t, y) != 0 {
			t.Error("the expiring keys are not those of the backup")
		}
		if g.sessionEnded(t, g.session) || !g.sessionEnded(t, later) || !isDone(later) {
			t.Error("the sessions are not those of the backup")
		}
		if now := g.write(t, "k", revision, "other"); now > revision+1 {
			t.Errorf("revision %d follows %d; want those of the epoch before again", now, revision)
		}
	})
}

// A gateway knows of an epoch when it hears from the cluster.
func TestEpochIsLearntFromAnswers(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		empty, epoch := c.Snapshot(), g.Epoch()
		c.Restore(empty)
		if g.Epoch() != epoch {
			t.Error("the gateway knows at once")
		}
		if _, err := g.Get(t.Context(), "k"); err != nil || g.Epoch() == epoch {
			t.Errorf("the gateway has not learnt it from an answer, error %v", err)
		}
	})
}
