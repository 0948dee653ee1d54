package embedded

import (
	"context"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockgateway/lockgateway/internal/telemetry"
)

// meter has what was last seen of all servers of the process told when it is
// collected. It is done once, since servers come and go.
var meter = sync.OnceFunc(func() {
	m := telemetry.Instruments{Meter: telemetry.Meter()}
	running := m.Gauge("lock_gateway.embedded.running", "",
		"1 if the embedded NATS server runs; 0 if it does not.")
	stored := m.Gauge("lock_gateway.embedded.stored", "By",
		"What the embedded NATS server has on disk.")
	routes := m.Gauge("lock_gateway.embedded.peers.connected", "{server}",
		"Other servers of the cluster that the embedded one is connected to.")
	current := m.Gauge("lock_gateway.embedded.current", "",
		"1 if the embedded NATS server, a node of a cluster, has all data that it is to keep; 0 if it is not known to.")
	m.Observe(func(_ context.Context, o metric.Observer) error {
		var all []*node
		nodes.Range(func(_, value any) bool {
			all = append(all, value.(*node))
			return true
		})
		for _, n := range all {
			// Servers are not asked: one that hangs must not keep all metrics waiting.
			seen := n.seen.Load()
			labels := n.labels(len(all) > 1)
			o.ObserveInt64(running, number(n.runs()), labels)
			if n.settings.cluster != nil {
				o.ObserveInt64(current, number(seen.current("") == nil), labels)
			}
			if seen == nil {
				continue
			}
			o.ObserveInt64(stored, seen.stored, labels)
			if n.settings.cluster != nil {
				o.ObserveInt64(routes, seen.peers, labels)
			}
		}
		return nil
	}, running, stored, routes, current)
})

// labels tell nodes of a process apart. Those of different clusters, and all that are
// alone, may have the same name, but not the same folder.
func (n *node) labels(several bool) metric.MeasurementOption {
	labels := []attribute.KeyValue{attribute.String("node", n.settings.name())}
	if several {
		labels = append(labels, attribute.String("dir", n.settings.dir))
	}
	return metric.WithAttributes(labels...)
}

func (n *node) runs() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server != nil
}

func number(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// connected counts servers: there are several connections to each.
func connected(peers *server.Routez) int64 {
	ids := make(map[string]bool)
	for _, r := range peers.Routes {
		ids[r.RemoteID] = true
	}
	return int64(len(ids))
}
