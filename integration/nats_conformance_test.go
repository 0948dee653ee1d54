package integration_test

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/nats"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/lock"
	"github.com/lockgateway/lockgateway/lock/locktest"
)

// Every promise of the contract, kept by one gateway's engine.
func TestNATSConformanceOneGateway(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{}).URLs()
	locktest.Run(t, func(t *testing.T) lock.Backend { return openNATSEngine(t, servers) })
	locktest.RunInspector(t, func(t *testing.T) locktest.Inspected { return openNATSEngine(t, servers) })
}

// The same promises when each request goes through another gateway.
func TestNATSConformanceThreeGateways(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{}).URLs()
	locktest.Run(t, func(t *testing.T) lock.Backend {
		return newRoundRobin(openNATSEngine(t, servers), openNATSEngine(t, servers), openNATSEngine(t, servers))
	})
}

// And over servers that replicate.
func TestNATSConformanceThreeServers(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, 3, natstest.Options{}).URLs()
	locktest.Run(t, func(t *testing.T) lock.Backend {
		return newRoundRobin(openNATSEngine(t, servers), openNATSEngine(t, servers))
	})
}

// openNATSEngine opens what a gateway runs. The suite closes it.
func openNATSEngine(t *testing.T, servers []string) *replicated.Backend {
	t.Helper()
	// It is long enough for a busy machine: nothing fails here.
	const patience = process.Soon / 2
	store, err := nats.Open(nats.Options{
		Connection:     nats.Connection{Servers: servers, DialTimeout: patience},
		Name:           natsBucket,
		RequestTimeout: patience,
		SessionTTL:     patience,
		ForgetAfter:    time.Hour,
		Logger:         zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return replicated.New(store, replicated.Options{RequestTimeout: patience})
}
