package main_test

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector takes what OpenTelemetry exporters send over HTTP.
type collector struct {
	*httptest.Server

	mu      sync.Mutex
	raw     strings.Builder // all that was sent
	spans   []*trace.Span
	metrics map[string]bool // names
}

func newCollector(t *testing.T) *collector {
	c := &collector{metrics: make(map[string]bool)}
	c.Server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.Close)
	return c
}

// env makes a process send all to the collector, soon.
func (c *collector) env() []string {
	return []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL,
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_BSP_SCHEDULE_DELAY=50",
		"OTEL_METRIC_EXPORT_INTERVAL=50",
	}
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	data, err := io.ReadAll(body)
	if err == nil {
		err = c.store(r.URL.Path, data)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (c *collector) store(path string, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(data)
	switch path {
	case "/v1/traces":
		var sent collectortrace.ExportTraceServiceRequest
		if err := proto.Unmarshal(data, &sent); err != nil {
			return err
		}
		for _, resource := range sent.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	case "/v1/metrics":
		var sent collectormetrics.ExportMetricsServiceRequest
		if err := proto.Unmarshal(data, &sent); err != nil {
			return err
		}
		for _, resource := range sent.GetResourceMetrics() {
			for _, scope := range resource.GetScopeMetrics() {
				for _, m := range scope.GetMetrics() {
					c.metrics[m.GetName()] = true
				}
			}
		}
	}
	return nil
}

// named returns the spans of a name.
func (c *collector) named(name string) []*trace.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*trace.Span
	for _, s := range c.spans {
		if s.GetName() == name {
			list = append(list, s)
		}
	}
	return list
}

func (c *collector) hasMetric(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metrics[name]
}

func (c *collector) expectWithout(t *testing.T, secret string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(c.raw.String(), secret) {
		t.Errorf("what was sent has the secret %q", secret)
	}
}

// attribute returns the value of an attribute of a span, as text.
func attribute(s *trace.Span, name string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() != name {
			continue
		}
		if v, ok := a.GetValue().GetValue().(*common.AnyValue_IntValue); ok {
			return strconv.FormatInt(v.IntValue, 10)
		}
		return a.GetValue().GetStringValue()
	}
	return ""
}

func TestMetricsOverOTLP(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	s := startServerIn(t, c.env(), strings.Replace(onlySite, "admin ADMIN", "admin ADMIN\n\tmetrics {\n\t\totlp\n\t}", 1), nil)
	s.take("1/secret-id", "")
	await(t, "the metrics are sent", func() bool {
		return c.hasMetric("lock_gateway_operations_total") && c.hasMetric("lock_gateway_slots_held")
	})
	c.expectWithout(t, "secret-id")
}

func TestTraces(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	s := startServerIn(t, c.env(), strings.Replace(onlySite, "\tlock_gateway", "\ttracing\n\tlock_gateway", 1), nil)
	s.take("1/secret-id", "holder=secret-name")
	waiter := s.queue("1/secret-id", "waitTimeoutMs=600000")
	s.awaitWaiting("1/secret-id", 1)
	s.expect("/v1/1/secret-id/release?holder=secret-name", `{"released":true}`)
	waiter.expectGrant(t)
	await(t, "the spans are sent", func() bool {
		return len(c.named("lock.acquire")) == 2 && len(c.named("lock.wait")) == 1 && len(c.named("lock.release")) == 1
	})
	wait, release := c.named("lock.wait")[0], c.named("lock.release")[0]
	parents := make(map[string]*trace.Span)
	for _, a := range c.named("lock.acquire") {
		parents[hex.EncodeToString(a.GetSpanId())] = a
		if len(a.GetParentSpanId()) == 0 || attribute(a, "outcome") != "acquired" || attribute(a, "backend") != "memory" || attribute(a, "lock") != attribute(release, "lock") {
			t.Errorf("the span of an acquire is %v", a)
		}
	}
	if parents[hex.EncodeToString(wait.GetParentSpanId())] == nil {
		t.Error("the wait is not part of an acquire")
	}
	if links := wait.GetLinks(); len(links) != 1 || string(links[0].GetSpanId()) != string(release.GetSpanId()) {
		t.Errorf("the links of the wait are %v; want one to the release", links)
	}
	if position := attribute(wait, "lock.queue.position"); position != "1" {
		t.Errorf("the position in the queue was %q; want 1", position)
	}
	if attribute(release, "outcome") != "released" || attribute(release, "lock") == "" {
		t.Errorf("the span of the release is %v", release)
	}
	// Caddy's own span has the address of the request; ours have no id.
	for _, span := range append(c.named("lock.acquire"), wait, release) {
		if text := span.String(); strings.Contains(text, "secret-id") || strings.Contains(text, "secret-name") {
			t.Errorf("a span has an id or a name: %s", text)
		}
	}
}
