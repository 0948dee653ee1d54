package integration_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockgateway/lockgateway/integration/certificates"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
)

// What clients are told while nodes are killed, frozen and stopped is what one
// semaphore would have told them.
func TestEmbeddedLinearizableUnderFaults(t *testing.T) {
	t.Parallel()
	gateways := newEmbeddedNodes(t).startAll(t, quick)
	h := &history{begun: time.Now(), gateways: gateways, locks: map[string][]porcupine.Operation{}}
	h.start(t, 6)
	h.awaitRound(t)
	for i, g := range gateways {
		for _, f := range []struct{ fail, mend func() }{
			{func() { g.Kill(t) }, func() { g.Restart(t) }},
			{func() { g.Pause(t) }, func() { g.Resume(t) }},
		}[i%2 : i%2+1] {
			f.fail()
			h.awaitRound(t)
			f.mend()
			h.awaitRound(t)
		}
	}
	h.stop()
	h.check(t)
}

// All nodes die at once, twice. What was held is held, and the log tells no secret.
func TestEmbeddedClusterIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	gateways := newEmbeddedNodes(t).startAll(t, quick)
	g1, g2 := gateways[0], gateways[1]
	g1.Take(t, "3/anonymous", "")
	g2.Take(t, "3/anonymous", "")
	named := g1.Take(t, "1/named", gatewaytest.Named("h"))
	load := startLoad(t, gateways...)
	for range 2 {
		for _, g := range gateways {
			g.Kill(t)
		}
		for _, g := range slices.Backward(gateways) {
			g.Restart(t)
		}
		load.expectRecovery(t)
		for _, g := range gateways {
			g.AwaitState(t, "3/anonymous", 2, 0)
			g.AwaitState(t, "1/named", 1, 0)
		}
	}
	load.stop(t)
	if again := g2.Take(t, "1/named", gatewaytest.Named("h")); again.Token != named.Token {
		t.Errorf("the holder is %v, was %v", again, named)
	}
	for _, g := range gateways {
		for _, secret := range []string{embeddedSecret, "$KV.lockgateway.", "anonymous"} {
			if strings.Contains(g.Output(t), secret) {
				t.Errorf("the log has %q", secret)
			}
		}
	}
}

// One node after the other is stopped and started, as for an upgrade, with encryption
// between them. The others serve meanwhile.
func TestEmbeddedNodesRestartOneByOne(t *testing.T) {
	t.Parallel()
	nodes := newEmbeddedNodes(t)
	nodes.files = certificates.New(t)
	gateways := nodes.startAll(t, quick)
	gateways[0].Take(t, "1/held", "")
	load := startLoad(t, gateways...)
	for _, g := range gateways {
		g.Stop(t)
		load.expectProgress(t)
		g.Restart(t)
		load.expectRecovery(t)
	}
	load.stop(t)
	for _, g := range gateways {
		g.AwaitState(t, "1/held", 1, 0)
	}
}

// Nodes may start in any order. Without a majority none of them serves.
func TestEmbeddedNodesStartInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{2, 0, 1}, {1, 2, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			nodes := newEmbeddedNodes(t)
			first := nodes.start(t, order[0], quick)
			if a := first.Acquire(t.Context(), "1/x", ""); !a.Refused() {
				t.Errorf("alone a node answered %v, want 503", a)
			}
			gateways := []*gatewaytest.Gateway{first, nodes.start(t, order[1], quick), nodes.start(t, order[2], quick)}
			for _, g := range gateways {
				awaitServing(t, g)
			}
			first.Take(t, "1/x", "")
			gateways[1].ExpectTaken(t, "1/x", "")

			// And again, now that there is data.
			for _, g := range gateways {
				g.Kill(t)
			}
			for _, g := range slices.Backward(gateways) {
				g.Restart(t)
			}
			for _, g := range gateways {
				g.AwaitState(t, "1/x", 1, 0)
			}
		})
	}
}

// A node that is cut off from the others refuses, while they serve. Nobody holds
// twice.
func TestEmbeddedNodeIsCutOff(t *testing.T) {
	t.Parallel()
	nodes := newEmbeddedNodes(t)
	nodes.relayed(t)
	gateways := nodes.startAll(t, quick)
	alone := gateways[0]
	alone.Take(t, "1/held", "")
	load := startLoad(t, gateways...)
	for _, r := range nodes.around(0) {
		r.Cut()
	}
	process.Await(t, "the node that is cut off refuses", func() bool {
		a := alone.Acquire(t.Context(), "1/held", gatewaytest.Named("x"))
		if a.OK() && a.Acquired {
			t.Fatalf("it granted: %v", a)
		}
		return !a.OK()
	})
	load.expectProgress(t)
	for _, r := range nodes.around(0) {
		r.Heal()
	}
	load.expectRecovery(t)
	load.stop(t)
	for _, g := range gateways {
		g.AwaitState(t, "1/held", 1, 0)
	}
}

// Who does not know the secret, or has another certificate or none, does not join,
// also with the name and the address of a node.
func TestEmbeddedStrangerIsNotLetIn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		change   func(t *testing.T, stranger *embeddedNodes)
		turnDown string // what the log of one of them says
	}{
		{"secret", func(_ *testing.T, s *embeddedNodes) { s.secret = "another-secret-of-nodes" }, "Authorization"},
		{"authority", func(t *testing.T, s *embeddedNodes) { s.files = certificates.New(t) }, "TLS route handshake error"},
		{"plain", func(_ *testing.T, s *embeddedNodes) { s.files = certificates.Files{} }, "TLS route handshake error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			nodes := newEmbeddedNodes(t)
			nodes.files = certificates.New(t)
			gateways := nodes.startAll(t, quick)
			gateways[0].Kill(t)
			stranger := *nodes
			stranger.dirs = []string{t.TempDir()}
			test.change(t, &stranger)
			g := stranger.start(t, 0, quick)
			process.Await(t, "the stranger is turned down", func() bool {
				return strings.Contains(g.Output(t)+gateways[1].Output(t)+gateways[2].Output(t), test.turnDown)
			})
			gateways[1].Await(t, "1/none", "an answer", func(gatewaytest.Answer) bool { return true })
			if a := g.Acquire(t.Context(), "1/x", ""); !a.Refused() {
				t.Errorf("the stranger answers %v, want 503", a)
			}
		})
	}
}

// The example of docs/backends.md, with the nodes' names, addresses and files.
func TestEmbeddedExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../examples/embedded/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "lock_gateway {\n")
	block, _, _ = strings.Cut(block, "\n\t}\n")
	nodes, files := newEmbeddedNodes(t), certificates.New(t)
	var gateways []*gatewaytest.Gateway
	for i, address := range nodes.addresses {
		replace := []string{
			"{env.NODE}", fmt.Sprintf("node-%d\nlisten %s", i, address),
			"node-1.example.com:6222 node-2.example.com:6222 node-3.example.com:6222", strings.Join(nodes.addresses, " "),
			"{env.NODES_SECRET}", embeddedSecret,
			"/etc/caddy/nodes-ca.pem", files.CA,
			"/etc/caddy/node.pem", files.ServerCert,
			"/etc/caddy/node-key.pem", files.ServerKey,
		}
		for i := 0; i < len(replace); i += 2 {
			if !strings.Contains(block, replace[i]) {
				t.Errorf("the example does not have %q", replace[i])
			}
		}
		gateways = append(gateways, gatewaytest.Start(t, fmt.Sprintf("node-%d", i), strings.NewReplacer(replace...).Replace(block)))
	}
	for _, g := range gateways {
		awaitServing(t, g)
	}
	gateways[0].Take(t, "1/example", "")
	waiting := gateways[1].Queue(t, "1/example", "", 1)
	gateways[2].ExpectRelease(t, "1/example", "", true)
	waiting.ExpectGrant(t)
}
