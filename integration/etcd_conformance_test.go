package integration_test

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/etcd"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/lock"
	"github.com/lockgateway/lockgateway/lock/locktest"
)

// Every promise of the contract, kept by one gateway's engine.
func TestConformanceOneGateway(t *testing.T) {
	t.Parallel()
	endpoints := etcdtest.Start(t, etcdtest.Options{}).Endpoints()
	locktest.Run(t, func(t *testing.T) lock.Backend { return openEngine(t, endpoints) })
	locktest.RunInspector(t, func(t *testing.T) locktest.Inspected { return openEngine(t, endpoints) })
}

// The same promises when each request goes through another gateway.
func TestConformanceThreeGateways(t *testing.T) {
	t.Parallel()
	endpoints := etcdtest.Start(t, etcdtest.Options{}).Endpoints()
	locktest.Run(t, func(t *testing.T) lock.Backend {
		return newRoundRobin(openEngine(t, endpoints), openEngine(t, endpoints), openEngine(t, endpoints))
	})
}

// openEngine opens what a gateway runs. The suite closes it.
func openEngine(t *testing.T, endpoints []string) *replicated.Backend {
	t.Helper()
	// It is long enough for a busy machine: nothing fails here.
	const patience = process.Soon / 2
	store, err := etcd.Open(etcd.Options{
		Connection: etcd.Connection{
			Endpoints:        endpoints,
			DialTimeout:      patience,
			KeepAliveTime:    etcd.DefaultKeepAliveTime,
			KeepAliveTimeout: patience,
		},
		Prefix:         prefix,
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
