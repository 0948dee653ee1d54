package hostile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
)

func TestSessionsEndUnderWay(t *testing.T) {
	both(t, hostile.Faults{SessionLoss: 1, DoneLate: time.Minute}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		observer := open(t, c)
		_, err := g.swap(t.Context(), "k", 0, "a")
		if fences := g.Linearizable(); fences != errors.Is(err, replicated.ErrSessionEnded) || fences != errors.Is(err, replicated.ErrNotApplied) {
			t.Errorf("the swap gave the error %v", err)
		}
		if !observer.sessionEnded(t, g.session) || observer.sessionEnded(t, observer.session) {
			t.Error("the session has not ended, or another has")
		}
		if isDone(g.session) {
			t.Error("the gateway knows at once")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !isDone(g.session) {
			t.Error("the gateway does not know in the end")
		}
	})
}

func TestEndedSessionsMayChangeRecords(t *testing.T) {
	both(t, hostile.Faults{}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		revision := g.write(t, "k", 0, "a")
		c.EndSessions(g.Store)
		if !isDone(g.session) {
			t.Error("the gateway does not know at once")
		}
		g.write(t, "k", revision, "b") // creates alone are fenced
	})
}

func TestSessionEndedLies(t *testing.T) {
	both(t, hostile.Faults{SessionLie: 1}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		if !g.sessionEnded(t, g.session) {
			t.Error("a session that lives is said to")
		}
		c.EndSessions(g.Store)
		if g.sessionEnded(t, g.session) {
			t.Error("a session that ended is said to have")
		}
	})
}

func TestSessionOfAClosedStoreRunsOutLate(t *testing.T) {
	const late = time.Minute
	both(t, hostile.Faults{EndLate: late}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		observer := open(t, c)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(observer.SessionTTL() - 1)
		if observer.sessionEnded(t, g.session) {
			t.Error("the session ran out early")
		}
		time.Sleep(late)
		synctest.Wait()
		if !observer.sessionEnded(t, g.session) {
			t.Error("the session did not run out")
		}
	})
}

func TestSessionsThatNobodyHearsOfRunOut(t *testing.T) {
	both(t, hostile.Faults{DropReply: 1}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		if _, err := g.OpenSession(t.Context(), ""); err == nil {
			t.Fatal("the reply was not dropped")
		}
		if n := c.Counts().Sessions; n != 2 {
			t.Fatalf("%d sessions; want 2", n)
		}
		time.Sleep(g.SessionTTL())
		synctest.Wait()
		if n := c.Counts().Sessions; n != 1 {
			t.Errorf("%d sessions; want 1", n)
		}
	})
}

func TestSessionRunsOutIfItCannotBeEnded(t *testing.T) {
	both(t, hostile.Faults{Lose: 1}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		if err := g.session.End(t.Context()); err == nil {
			t.Fatal("the call was not lost")
		}
		if !isDone(g.session) || c.Counts().Sessions != 1 {
			t.Error("End did not close Done, or ended the session")
		}
		time.Sleep(g.SessionTTL())
		synctest.Wait()
		if n := c.Counts().Sessions; n != 0 {
			t.Errorf("%d sessions; want none", n)
		}
	})
}

func TestEndsAreAnnouncedByStrictClusters(t *testing.T) {
	both(t, hostile.Faults{EventDelay: time.Second, EventDouble: 1}, func(t *testing.T, c *hostile.Cluster, g *gateway) {
		var ended []replicated.SessionID
		ctx, cancel := context.WithCancel(t.Context())
		open(t, c).FollowSessions(ctx, func(id replicated.SessionID) { ended = append(ended, id) })
		time.Sleep(time.Second)
		second := openSession(t, g)
		if err := g.session.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		want := 0
		if g.Linearizable() {
			want = 2
		}
		if len(ended) != want || want > 0 && (ended[0] != g.session.ID() || ended[1] != ended[0]) {
			t.Errorf("the ends of %x were announced; want %d of %x", ended, want, g.session.ID())
		}
		cancel()
		if err := second.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if len(ended) != want {
			t.Error("an end was announced after the context was done")
		}
	})
}
