package integration_test

import (
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
)

// Servers that cannot let single keys expire are not used, which the log says.
func TestNATSServerBefore211IsRefused(t *testing.T) {
	t.Parallel()
	const old = "2.10.29"
	c := natsCluster{natstest.Start(t, natstest.Options{Version: "v" + old})}
	g := startGateway(t, "gateway", quick, c)
	for range 2 {
		if a := g.Acquire(t.Context(), "1/x", ""); !a.Refused() {
			t.Errorf("an acquire was answered %v, want 503", a)
		}
	}
	process.Await(t, "the log tells the version", func() bool {
		out := g.Output(t)
		return strings.Contains(out, "nats-server "+old) && strings.Contains(out, "2.11.0 or later")
	})
}
