package main_test

import (
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// twoSites are two handlers that share their locks. One has the metrics beside them.
const twoSites = `{
	admin ADMIN
	default_bind 127.0.0.1
}
http://SITE {
	lock_gateway {
		max_waiters 1
	}
}
http://OTHER {
	metrics /metrics
	lock_gateway
}
`

// scrape reads Caddy's metrics as Prometheus does.
func (s *server) scrape() samples {
	s.t.Helper()
	a := mustFetch(s.t, s.client, "http://"+s.admin+"/metrics")
	if a.status != http.StatusOK {
		s.t.Fatalf("/metrics answered %d %s", a.status, a.body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(a.body))
	if err != nil {
		s.t.Fatal(err)
	}
	return families
}

type samples map[string]*dto.MetricFamily

// of returns the sample with the given labels, as "name=value", or nil.
func (s samples) of(name string, labels ...string) *dto.Metric {
	for _, m := range s[name].GetMetric() {
		have := make(map[string]bool)
		for _, l := range m.GetLabel() {
			have[l.GetName()+"="+l.GetValue()] = true
		}
		all := true
		for _, l := range labels {
			all = all && have[l]
		}
		if all {
			return m
		}
	}
	return nil
}

func (s samples) operations(action, outcome string) float64 {
	return s.of("lock_gateway_operations_total", "backend=memory", "action="+action, "outcome="+outcome).GetCounter().GetValue()
}

func TestMetricsOfTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	const embedded = "lock_gateway {\n\t\tbackend nats {\n\t\t\tembedded\n\t\t}\n\t}"
	s := startServer(t, strings.Replace(onlySite, "lock_gateway", embedded, 1), nil)
	await(t, "the server takes locks", func() bool { return s.get("/v1/1/x/acquire?holder=h").status == http.StatusOK })
	m := s.scrape()
	if got := m.of("lock_gateway_embedded_running").GetGauge().GetValue(); got != 1 {
		t.Errorf("lock_gateway_embedded_running is %v; want 1", got)
	}
	if got := m.of("lock_gateway_store_swaps_total", "outcome=applied").GetCounter().GetValue(); got <= 0 {
		t.Errorf("lock_gateway_store_swaps_total is %v of those applied; want some", got)
	}
	// The server is looked at from time to time only.
	await(t, "something is stored", func() bool {
		return s.scrape().of("lock_gateway_embedded_stored_bytes").GetGauge().GetValue() > 0
	})
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := startServer(t, twoSites, nil)
	s.take("1/secret-id", "")
	s.expect("/v1/1/secret-id/acquire", `{"acquired":false}`)
	s.expect("/v1/1/secret-id/acquire?waitTimeoutMs=1", `{"acquired":false}`)
	s.expect("/v1/1/secret-id/value", `{"value":1}`)
	waiter := s.queue("1/secret-id", "waitTimeoutMs=600000")
	s.awaitWaiting("1/secret-id", 1)
	s.expectRefusal("/v1/1/secret-id/acquire?waitTimeoutMs=600000", "max_waiters")

	before := s.scrape()
	for name, want := range map[string]float64{
		"lock_gateway_requests_waiting": 1, "lock_gateway_slots_held": 1, "lock_gateway_places_queued": 1, "lock_gateway_backend_ready": 1,
	} {
		if got := before.of(name, "backend=memory"); got == nil || got.GetGauge().GetValue() != want {
			t.Errorf("%s is %v; want %v", name, got, want)
		}
	}
	for _, name := range []string{"lock_gateway_hold_age_max_seconds", "lock_gateway_wait_age_max_seconds"} {
		await(t, name+" grows", func() bool { return s.scrape().of(name, "backend=memory").GetGauge().GetValue() > 0 })
	}
	s.expect("/v1/1/secret-id/release", `{"released":true}`)
	waiter.expectGrant(t)
	s.expect("/v1/1/secret-id/release", `{"released":true}`)
	s.expect("/v1/1/secret-id/release", `{"released":false}`)
	s.expect("/v1/1/secret-id/reset", `{"reset":true}`)

	check := func(again float64) {
		t.Helper()
		// An operation is counted when it is over, which its client may know before.
		await(t, "the last operation is counted", func() bool { return s.scrape().operations("release", "released") == 2+again })
		m := s.scrape()
		for _, want := range []struct {
			action, outcome string
			n               float64
		}{
			{"acquire", "acquired", 2 + again},
			{"acquire", "busy", 1},
			{"acquire", "timed_out", 1},
			{"acquire", "limited", 1},
			{"release", "released", 2 + again},
			{"release", "not_held", 1},
			{"reset", "done", 1},
		} {
			if got := m.operations(want.action, want.outcome); got != want.n {
				t.Errorf("%v operations are counted of %s, %s; want %v", got, want.action, want.outcome, want.n)
			}
		}
		for name, want := range map[string]uint64{
			"lock_gateway_acquire_wait_duration_seconds": 1, // those granted
			"lock_gateway_operation_duration_seconds":    4 + 1 + uint64(again),
		} {
			labels := []string{"backend=memory", "outcome=acquired"}
			if strings.Contains(name, "operation") {
				labels = []string{"backend=memory", "action=acquire"}
			}
			if got := m.of(name, labels...).GetHistogram().GetSampleCount(); got != want {
				t.Errorf("%s has %d samples; want %d", name, got, want)
			}
		}
	}
	check(0)

	// Totals go on after a reload, which has a registry of its own.
	s.mustReload(strings.Replace(twoSites, "max_waiters 1", "max_waiters 2", 1))
	s.take("1/secret-id", "")
	s.expect("/v1/1/secret-id/release", `{"released":true}`)
	check(1)

	for _, address := range []string{s.admin, s.other} {
		text := mustFetch(t, s.client, "http://"+address+"/metrics").body
		if !strings.Contains(text, "lock_gateway_operations_total{") {
			t.Errorf("there are no metrics at %s", address)
		}
		if strings.Contains(text, "secret-id") {
			t.Error("the metrics have a lock's id")
		}
	}
}
