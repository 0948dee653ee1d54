// Package telemetry is where the metrics of the process come together, and how
// spans are started. Who measures something uses OpenTelemetry's API; what is
// measured appears in Caddy's own metrics, and leaves over OTLP if those do.
package telemetry

import (
	"fmt"
	"runtime"
	"sync"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// Name is the instrumentation scope of all metrics and spans.
const Name = "github.com/lockgateway/lockgateway"

// BackendKey is the attribute that names the backend's module: memory, etcd, nats.
const BackendKey = "backend"

// process is the one meter provider. It outlives config reloads, of which each has
// a registry of its own, and so do the totals.
var process = sync.OnceValue(func() *exported {
	var caught catcher
	durations := new(external)
	// A collector that is registered twice makes a registry fail, so the exporter
	// gets none: Expose registers what it has caught, once for each.
	reader, err := exporter.New(exporter.WithRegisterer(&caught), exporter.WithProducer(durations),
		exporter.WithoutTargetInfo(), exporter.WithoutScopeInfo())
	if err != nil {
		panic(err) // it only fails if the registerer does
	}
	return &exported{
		provider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		collector: caught.collector,
		external:  durations,
		have:      make(map[weak.Pointer[prometheus.Registry]]bool),
	}
})

type exported struct {
	provider  *sdkmetric.MeterProvider
	collector prometheus.Collector
	external  *external

	mu   sync.Mutex // guards have
	have map[weak.Pointer[prometheus.Registry]]bool
}

// Meter returns the meter whose instruments appear in every registry that was
// given to Expose.
func Meter() metric.Meter { return process().provider.Meter(Name) }

// Expose makes the metrics appear in the registry from now on. It may be given the
// same one again. Nothing need be undone when the registry's config is gone.
func Expose(registry *prometheus.Registry) error {
	p, key := process(), weak.Make(registry)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.have[key] {
		return nil
	}
	if err := registry.Register(p.collector); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	p.have[key] = true
	runtime.AddCleanup(registry, p.forget, key)
	return nil
}

func (p *exported) forget(key weak.Pointer[prometheus.Registry]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.have, key)
}

// catcher is a registerer that keeps what the exporter registers.
type catcher struct{ collector prometheus.Collector }

// Register implements prometheus.Registerer.
func (c *catcher) Register(collector prometheus.Collector) error {
	c.collector = collector
	return nil
}

// MustRegister implements prometheus.Registerer.
func (c *catcher) MustRegister(collectors ...prometheus.Collector) {
	for _, collector := range collectors {
		_ = c.Register(collector)
	}
}

// Unregister implements prometheus.Registerer.
func (c *catcher) Unregister(prometheus.Collector) bool { return true }
