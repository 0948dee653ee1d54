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

// bubble runs a test of a cluster in a time of its own.
func bubble(t *testing.T, config hostile.Config, test func(t *testing.T, c *hostile.Cluster, g *gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		faults := config.Faults
		config.Faults = hostile.Faults{}
		c := hostile.New(t, config)
		defer c.Close()
		g := open(t, c)
		c.SetFaults(faults) // which strike what the test does
		test(t, c, g)
	})
}

// both runs a test of a cluster of each kind.
func both(t *testing.T, faults hostile.Faults, test func(t *testing.T, c *hostile.Cluster, g *gateway)) {
	t.Helper()
	t.Run("strict", func(t *testing.T) { bubble(t, hostile.Config{Faults: faults}, test) })
	t.Run("loose", func(t *testing.T) { bubble(t, hostile.Config{Kind: hostile.Loose, Faults: faults}, test) })
}

// gateway is a gateway's store and session, with words to use them.
type gateway struct {
	replicated.Store
	session replicated.Session
}

func open(t *testing.T, c *hostile.Cluster) *gateway {
	t.Helper()
	s := c.Open()
	return &gateway{Store: s, session: openSession(t, s)}
}

func openSession(t *testing.T, s replicated.Store) replicated.Session {
	t.Helper()
	session, err := s.OpenSession(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func (g *gateway) swap(ctx context.Context, key string, expect uint64, value string, keys ...replicated.Expiring) (replicated.SwapResult, error) {
	return g.Swap(ctx, replicated.Swap{Key: key, Expect: expect, Value: []byte(value), Session: g.session, Expiring: keys})
}

// write makes a swap that is applied.
func (g *gateway) write(t *testing.T, key string, expect uint64, value string, keys ...replicated.Expiring) uint64 {
	t.Helper()
	res, err := g.swap(t.Context(), key, expect, value, keys...)
	if err != nil || !res.Applied {
		t.Fatalf("the swap gave %+v, error %v", res, err)
	}
	return res.Entry.Revision
}

func (g *gateway) newExpiring(t *testing.T, ttl time.Duration) replicated.Expiring {
	t.Helper()
	x, err := g.NewExpiring(t.Context(), ttl)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// remaining is Remaining of one key.
func (g *gateway) remaining(t *testing.T, x replicated.Expiring) time.Duration {
	t.Helper()
	left, err := g.Remaining(t.Context(), []uint64{x.ID})
	if err != nil {
		t.Fatal(err)
	}
	return left[0]
}

func (g *gateway) sessionEnded(t *testing.T, s replicated.Session) bool {
	t.Helper()
	ended, err := g.SessionEnded(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// has checks what a record is in truth.
func has(t *testing.T, c *hostile.Cluster, key, value string) {
	t.Helper()
	if e := c.Record(key); string(e.Value) != value {
		t.Fatalf("the record of %s is %q; want %q", key, e.Value, value)
	}
}

// certain checks an error that says that a swap never happens.
func certain(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, replicated.ErrNotApplied) {
		t.Fatalf("the swap gave the error %v; want %v", err, replicated.ErrNotApplied)
	}
}

// doubtful checks an error that leaves a swap in doubt.
func doubtful(t *testing.T, err error) {
	t.Helper()
	if err == nil || errors.Is(err, replicated.ErrNotApplied) {
		t.Fatalf("the swap gave the error %v; want one that leaves it in doubt", err)
	}
}

func isDone(s replicated.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// events collects what Follow reports; it is read after synctest.Wait.
type events []replicated.Event

func (e *events) notify(event replicated.Event) { *e = append(*e, event) }

func (e *events) missed() (n int) {
	for _, event := range *e {
		if event.Missed {
			n++
		}
	}
	return n
}

func (e *events) values() (values []string) {
	for _, event := range *e {
		if !event.Missed {
			values = append(values, string(event.Entry.Value))
		}
	}
	return values
}
