package integration_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
)

func TestInspectEtcd(t *testing.T) { onEtcd(t, testInspect) }
func TestInspectNATS(t *testing.T) { onNATS(t, testInspect) }

// A lock that is stuck is found, looked into and freed from any gateway.
func testInspect(t *testing.T, start starter) {
	g1, g2 := startTwo(t, start)
	const lock = "1/stuck"
	g1.Take(t, lock, gatewaytest.Named("worker-3"))
	g2.Take(t, "3/other", "")
	first := g1.Queue(t, lock, "", 1)
	second := g2.Queue(t, lock, "", 2)
	third := g1.Queue(t, lock, gatewaytest.Named("w"), 3)

	var gateways struct {
		Gateways []struct {
			ID, Host string
			Self     bool
		}
	}
	inspect(t, g1, &gateways, "gateways")
	if len(gateways.Gateways) != 2 || gateways.Gateways[0].Self == gateways.Gateways[1].Self || gateways.Gateways[0].Host == "" {
		t.Fatalf("the gateways are %+v", gateways)
	}
	own, other := gateways.Gateways[0].ID, gateways.Gateways[1].ID
	if !gateways.Gateways[0].Self {
		own, other = other, own
	}

	type row struct {
		Lock                    string
		Held, Waiting           int64
		HeldSince, WaitingSince string
	}
	var detail struct {
		row
		Holders []struct {
			Holder string
			Token  uint64
		}
		Queue []struct {
			Count    int64
			Named    bool
			Gateways []string
		}
	}
	for _, g := range []*gatewaytest.Gateway{g1, g2} {
		// On NATS a list may be old.
		process.Await(t, "the list shows both locks", func() bool {
			var list struct{ Locks []row }
			inspect(t, g, &list, "ls", "--sort", "queue")
			return len(list.Locks) == 2 && list.Locks[0].Lock == lock && list.Locks[0].Held == 1 && list.Locks[0].Waiting == 3 &&
				list.Locks[0].HeldSince != "" && list.Locks[0].WaitingSince != "" &&
				list.Locks[1].Lock == "3/other" && list.Locks[1].Held == 1 && list.Locks[1].Waiting == 0
		})
		inspect(t, g, &detail, "show", lock)
		if len(detail.Holders) != 1 || detail.Holders[0].Holder != "worker-3" || detail.Holders[0].Token == 0 || len(detail.Queue) != 3 {
			t.Fatalf("the lock is %+v", detail)
		}
		for i, want := range []struct {
			gateway string
			named   bool
		}{{own, false}, {other, false}, {own, true}} {
			q := detail.Queue[i]
			if q.Count != 1 || q.Named != want.named || !slices.Equal(q.Gateways, []string{want.gateway}) {
				t.Errorf("entry %d of the queue is %+v; want %+v", i, q, want)
			}
		}
	}

	if out := g2.Inspect(t, "release", lock, "--holder", "worker-3"); strings.TrimSpace(out) != "released" {
		t.Errorf("the release printed %s", out)
	}
	first.ExpectGrant(t)
	g1.Inspect(t, "reset", lock)
	for _, w := range []*gatewaytest.Request{second, third} {
		w.ExpectDenied(t)
	}
	g2.AwaitState(t, lock, 0, 0)
}

// inspect runs a command with --json and decodes what it prints.
func inspect(t *testing.T, g *gatewaytest.Gateway, answer any, args ...string) {
	t.Helper()
	out := g.Inspect(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), answer); err != nil {
		t.Fatalf("%v printed %s: %v", args, out, err)
	}
}
