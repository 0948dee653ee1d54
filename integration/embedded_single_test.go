package integration_test

import (
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// A gateway with a server of its own that is killed at any moment has forgotten
// nothing when it is back, and invented nothing.
func TestEmbeddedSingleIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	g := startEmbedded(t, quick)
	g.Take(t, "3/anonymous", "")
	g.Take(t, "3/anonymous", "")
	named := g.Take(t, "1/named", gatewaytest.Named("h"))
	load := startLoad(t, g)
	for range 5 {
		waiter := g.Begin(t, "1/named", gatewaytest.ForLong(gatewaytest.Named("w")))
		load.expectProgress(t)
		g.Kill(t)
		if a := waiter.Answer(t); a.Err == nil {
			t.Errorf("a waiter of the dead gateway got %v", a)
		}
		g.Restart(t)
		load.expectRecovery(t)
		g.AwaitState(t, "3/anonymous", 2, 0)
		if again := g.Take(t, "1/named", gatewaytest.Named("h")); again.Token != named.Token {
			t.Errorf("the holder is %v, was %v", again, named)
		}
		g.ExpectTaken(t, "1/named", gatewaytest.Named("other"))
	}
	load.stop(t)
	if out := g.Output(t); strings.Contains(out, "made anew") || strings.Contains(out, "anonymous") {
		t.Error("the log says that the bucket was made anew, or the id of a lock")
	}
}

// It ends cleanly, and is back with what was held.
func TestEmbeddedSingleIsStopped(t *testing.T) {
	t.Parallel()
	g := startEmbedded(t, patient, "sync_interval 10s")
	g.Take(t, "1/x", "")
	waiter := g.Queue(t, "1/x", "", 1)
	g.Stop(t)
	waiter.ExpectRefused(t)
	g.Restart(t)
	g.AwaitState(t, "1/x", 1, 0)
	// With a name it can be repeated until the store answers.
	g.ExpectRelease(t, "1/x", "", true)
	g.Take(t, "1/x", "")
}
