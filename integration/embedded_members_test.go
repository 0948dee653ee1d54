package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// Nodes that come, go, and come back as somebody else.

// awaitCurrent waits until a node has caught up with the others, and says so. From then
// on it counts for the majority.
func awaitCurrent(t *testing.T, g *gatewaytest.Gateway, node string) {
	t.Helper()
	process.Await(t, node+" is ready", func() bool {
		m := string(g.Metrics(t))
		return strings.Contains(m, `lock_gateway_backend_ready{backend="nats"} 1`) &&
			strings.Contains(m, fmt.Sprintf(`lock_gateway_embedded_current{node=%q} 1`, node))
	})
}

// A node that lost its data gets it from the others.
func TestEmbeddedNodeIsWiped(t *testing.T) {
	t.Parallel()
	nodes := newEmbeddedNodes(t)
	gateways := nodes.startAll(t, quick)
	gateways[0].Take(t, "1/held", "")
	load := startLoad(t, gateways...)
	wiped := gateways[2]
	wiped.Kill(t)
	if err := os.RemoveAll(nodes.dirs[2]); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(nodes.dirs[2], 0o700); err != nil {
		t.Fatal(err)
	}
	load.expectProgress(t)
	wiped.Restart(t)
	load.expectRecovery(t)
	awaitCurrent(t, wiped, "node-3")
	blocks, err := filepath.Glob(filepath.Join(nodes.dirs[2], "jetstream/$G/streams/KV_lockgateway/msgs/*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Errorf("the node is ready and has no data (%v)", err)
	}
	load.stop(t)
	gateways[0].Kill(t)
	wiped.AwaitState(t, "1/held", 1, 0)
}

// restartOneByOne gives the first nodes what is known of all by now, each once the one
// before has caught up.
func (e *embeddedNodes) restartOneByOne(t *testing.T, load *load, first []*gatewaytest.Gateway) {
	t.Helper()
	for node, g := range first {
		g.Stop(t)
		g.Configure(e.config(node, quick))
		g.Restart(t)
		awaitCurrent(t, g, fmt.Sprintf("node-%d", node+1))
		load.expectRecovery(t)
	}
}

// A machine is replaced by one at another address. The others learn of it one by one.
func TestEmbeddedNodeIsReplacedAtAnotherAddress(t *testing.T) {
	t.Parallel()
	nodes := newEmbeddedNodes(t)
	gateways := nodes.startAll(t, quick)
	gateways[0].Take(t, "1/held", "")
	load := startLoad(t, gateways...)
	gateways[2].Kill(t)
	load.expectProgress(t)
	nodes.addresses[2], nodes.dirs[2] = testaddr.Free(t), t.TempDir()
	gateways[2].Configure(nodes.config(2, quick))
	gateways[2].Restart(t)
	awaitCurrent(t, gateways[2], "node-3")
	nodes.restartOneByOne(t, load, gateways[:2])
	load.stop(t)
	gateways[0].Kill(t)
	gateways[2].AwaitState(t, "1/held", 1, 0)
	gateways[1].ExpectTaken(t, "1/held", "")
}

// addTwo makes five nodes of three.
func (e *embeddedNodes) addTwo(t *testing.T) {
	t.Helper()
	for range 2 {
		e.addresses, e.dirs = append(e.addresses, testaddr.Free(t)), append(e.dirs, t.TempDir())
	}
}

// Two nodes join three, and serve as these do.
func TestEmbeddedClusterGrowsToFive(t *testing.T) {
	t.Parallel()
	nodes := newEmbeddedNodes(t)
	gateways := nodes.startAll(t, quick)
	gateways[0].Take(t, "1/held", "")
	load := startLoad(t, gateways...)
	nodes.addTwo(t)
	for node := 3; node < 5; node++ {
		gateways = append(gateways, nodes.start(t, node, quick))
		awaitServing(t, gateways[node])
	}
	nodes.restartOneByOne(t, load, gateways[:3])
	load.stop(t)
	load = startLoad(t, gateways...)
	for _, g := range gateways {
		g.ExpectTaken(t, "1/held", "")
		g.Kill(t)
		load.expectProgress(t)
		g.Restart(t)
		load.expectRecovery(t)
	}
	load.stop(t)
}

// Two of five nodes leave for good. Those that stay get what they had, and do not miss
// them.
func TestEmbeddedClusterShrinksToThree(t *testing.T) {
	t.Parallel()
	nodes := newEmbeddedNodes(t)
	nodes.addTwo(t)
	gateways := nodes.startAll(t, quick)
	gateways[0].Take(t, "1/held", "")
	load := startLoad(t, gateways[:3]...)
	for node := 4; node > 2; node-- {
		name := fmt.Sprintf("node-%d", node+1)
		process.Await(t, name+" is known, and not removed as it runs", func() bool {
			return refusesToRemove(t, gateways[0], name, "the node runs")
		})
		gateways[node].Stop(t)
		process.Await(t, name+" is removed", func() bool {
			out, err := gateways[0].TryInspect(t, "remove-node", name)
			return err == nil && out == "removed\n"
		})
		if !refusesToRemove(t, gateways[1], name, "no such node") {
			t.Errorf("%s can be removed twice", name)
		}
	}
	load.expectRecovery(t)
	nodes.addresses, nodes.dirs = nodes.addresses[:3], nodes.dirs[:3]
	nodes.restartOneByOne(t, load, gateways[:3])
	load.stop(t)
	load = startLoad(t, gateways[:3]...)
	for i, g := range gateways[:3] {
		g.ExpectTaken(t, "1/held", "")
		g.Kill(t)
		load.expectProgress(t)
		if i == 0 {
			process.Await(t, "no node is removed from three", func() bool {
				return refusesToRemove(t, gateways[1], "node-1", "only 3 nodes")
			})
		}
		g.Restart(t)
		load.expectRecovery(t)
		awaitCurrent(t, g, fmt.Sprintf("node-%d", i+1))
	}
	load.stop(t)
	list := gateways[0].Inspect(t, "nodes")
	if rows := strings.Split(strings.TrimSpace(list), "\n"); len(rows) != 4 || strings.Count(list, "leads") != 1 || strings.Count(list, "the one asked") != 1 {
		t.Errorf("the nodes are\n%s", list)
	}
}

// refusesToRemove has a node removed, which must not work. It reports whether the reason
// is as given: while the nodes elect a leader, it is another.
func refusesToRemove(t *testing.T, g *gatewaytest.Gateway, node, why string) bool {
	t.Helper()
	out, err := g.TryInspect(t, "remove-node", node)
	if err == nil {
		t.Fatalf("%s was removed", node)
	}
	return strings.Contains(out, why)
}

// A copy of the folder is a backup, if the process is stopped meanwhile.
func TestEmbeddedFolderIsRestoredFromACopy(t *testing.T) {
	t.Parallel()
	dir, backup := t.TempDir(), t.TempDir()
	g := startEmbedded(t, quick, "dir "+dir)
	g.Take(t, "1/held", "")
	named := g.Take(t, "2/named", gatewaytest.Named("h"))
	g.Stop(t)
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	g.Restart(t)
	awaitServing(t, g)
	g.ExpectRelease(t, "1/held", "", true)
	g.Kill(t)
	restored := gatewaytest.Start(t, "restored", embeddedBackend(quick, "dir "+backup))
	awaitServing(t, restored)
	restored.ExpectTaken(t, "1/held", "")
	if again := restored.Take(t, "2/named", gatewaytest.Named("h")); again.Token != named.Token {
		t.Errorf("the holder is %v, was %v", again, named)
	}
}
