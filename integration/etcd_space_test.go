package integration_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
)

// A full database refuses every change. Nothing is lost, and all goes on once
// an operator has made room.
func TestFullDatabase(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{QuotaBytes: 16 << 20})
	gateways := startGateways(t, 2, patient, etcdCluster{etcd})
	g1, g2 := gateways[0], gateways[1]
	g1.Take(t, "1/x", "")
	named := g1.Take(t, "1/named", gatewaytest.Named("h"))
	waiters := []*gatewaytest.Request{
		g1.Queue(t, "1/x", "", 1),
		g2.Queue(t, "1/x", "", 2),
	}
	load := startLoad(t, gateways...)
	etcd.Fill(t)

	for _, g := range gateways {
		for _, a := range []gatewaytest.Answer{
			g.Acquire(t.Context(), "1/new", ""),
			g.Acquire(t.Context(), "1/new", gatewaytest.Named("h")),
			g.Release(t.Context(), "1/x", ""),
			g.Release(t.Context(), "1/named", gatewaytest.Named("h")),
			g.Reset(t.Context(), "1/x"),
		} {
			if !a.Refused() {
				t.Errorf("a change in a full database was answered %v, want 503", a)
			}
		}
		g.ExpectState(t, "1/x", 1, 2)
		if again := g.State(t, "1/named"); again.Held() != 1 || again.Holders[0].Token != named.Token {
			t.Errorf("the state is %v, the holder got %v", again, named)
		}
	}
	for _, w := range waiters {
		w.ExpectWaiting(t)
	}

	etcd.MakeRoom(t)
	load.expectRecovery(t)
	g2.ExpectState(t, "1/x", 1, 2)
	for _, w := range waiters {
		g2.ExpectRelease(t, "1/x", "", true)
		w.ExpectGrant(t)
	}
	g2.ExpectRelease(t, "1/named", gatewaytest.Named("h"), true)
	g1.Take(t, "1/new", "")
	load.stop(t)
}

// Compaction takes revisions away that watches may still be at.
func TestCompactionUnderLoad(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{KeepRevisions: 1})
	gateways := startGateways(t, 2, patient, etcdCluster{etcd})
	gateways[0].Take(t, "1/x", gatewaytest.Named(firstHolder))
	waiters := queueAll(t, "1/x", 4, gateways...)
	load := startLoad(t, gateways...)
	for range 8 {
		etcd.Compact(t)
		load.expectProgress(t)
	}
	expectInOrder(t, "1/x", waiters, gateways...)
	load.stop(t)
}

// A watch is deaf while what it should have told is compacted away.
func TestCompactionBehindADeafWatch(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{})
	line := relay.New(t, etcd.Members()[0].Address())
	deaf := startGateway(t, "behind-relay", patient, etcdCluster{etcd}, line.Address())
	g := startGateway(t, "beside", patient, etcdCluster{etcd})
	for round := range 3 {
		lock := fmt.Sprintf("1/round-%d", round)
		g.Take(t, lock, "")
		w := deaf.Queue(t, lock, "", 1)
		line.Stall(relay.Answers)
		g.ExpectRelease(t, lock, "", true)
		fillHistory(t, etcd)
		etcd.Compact(t)
		line.Cut()
		line.Heal()
		w.ExpectGrant(t)
		process.Await(t, "a release through the gateway is answered", func() bool {
			return deaf.Release(t.Context(), lock, "").OK()
		})
		g.AwaitState(t, lock, 0, 0)
	}
}

// fillHistory makes some revisions.
func fillHistory(t *testing.T, etcd *etcdtest.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	for range 50 {
		if _, err := etcd.Client().Put(ctx, "somebody else's key", ""); err != nil {
			t.Fatal(err)
		}
	}
}
