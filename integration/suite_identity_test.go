package integration_test

import (
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/relay"
)

// More releases than acquires do not make slots.
func testB14DoubleReleaseNeverExceedsMax(t *testing.T, start starter) {
	g1, g2 := startTwo(t, start)
	gateways := []*gatewaytest.Gateway{g1, g2}
	g1.Take(t, "3/x", "")
	g1.ExpectRelease(t, "3/x", "", true)
	g2.ExpectRelease(t, "3/x", "", false)
	for range 10 {
		g1.Take(t, "3/x", "")
		g2.Take(t, "3/x", "")
		var (
			clients sync.WaitGroup
			freed   atomic.Int64
		)
		for i := range 12 {
			clients.Go(func() {
				if a := gateways[i%2].Release(t.Context(), "3/x", ""); !a.OK() {
					t.Errorf("a release was answered %v", a)
				} else if a.Released {
					freed.Add(1)
				}
			})
		}
		clients.Wait()
		if n := freed.Load(); n != 2 {
			t.Fatalf("2 slots were held, and %d were freed", n)
		}
		g1.ExpectState(t, "3/x", 0, 0)
	}
	for i := range 3 {
		gateways[i%2].Take(t, "3/x", "")
	}
	g1.ExpectTaken(t, "3/x", "")
	g2.ExpectTaken(t, "3/x", "")
}

// A request's connection dies and its sender's HTTP stack sends it again, by
// way of another gateway.
func testB23RepeatedGetTakesOneSlot(t *testing.T, start starter) {
	g1, g2 := startTwo(t, start)
	line := relay.New(t, g1.Address())
	client := gatewaytest.NewClient(line.Address())
	for _, test := range []struct {
		name, query string
		both        int64 // places of both
	}{
		{"while it waits", "", 2},
		{"while the holder waits", gatewaytest.Named("h"), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			lock := "1/" + url.PathEscape(test.name)
			g2.Take(t, lock, "")
			first := client.Begin(t, lock, gatewaytest.ForLong(test.query))
			g2.AwaitState(t, lock, 1, 1)
			second := g2.Queue(t, lock, test.query, test.both)
			line.Cut()
			if a := first.Answer(t); a.Err == nil {
				t.Errorf("the dead connection brought %v", a)
			}
			line.Heal()
			g2.AwaitState(t, lock, 1, 1)
			g1.ExpectRelease(t, lock, "", true)
			if a := second.ExpectGrant(t); a.Held() != 1 {
				t.Errorf("the grant is %v", a)
			}
			g1.ExpectState(t, lock, 1, 0)
		})
	}

	t.Run("when it was answered", func(t *testing.T) {
		line.LoseAnswers(1)
		if a := client.Acquire(t.Context(), "5/answered", gatewaytest.Named("h")); a.Err == nil {
			t.Errorf("the dead connection brought %v", a)
		}
		held := g2.State(t, "5/answered").Holders
		if len(held) != 1 {
			t.Fatalf("the holders are %v", held)
		}
		if a := g2.Take(t, "5/answered", gatewaytest.Named("h")); a.Token != held[0].Token || a.Held() != 1 {
			t.Errorf("the second request got %v, want token %d", a, held[0].Token)
		}
	})
}
