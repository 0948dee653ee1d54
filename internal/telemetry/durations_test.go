package telemetry_test

import (
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"

	"github.com/lockgateway/lockgateway/internal/telemetry"
)

func TestDurationsAreAHistogram(t *testing.T) {
	d := telemetry.NewDurations("test.durations", "What a test recorded.", time.Millisecond, time.Second)
	d.Of(attribute.String("of", "never")) // has no duration
	fast := d.Of(attribute.String("of", "fast"))
	const recorders = 4
	var all sync.WaitGroup
	for range recorders {
		all.Go(func() {
			for _, took := range []time.Duration{time.Microsecond, time.Millisecond, time.Millisecond + 1, time.Hour} {
				fast.Record(took)
			}
		})
	}
	all.Wait()

	registry := prometheus.NewRegistry()
	if err := telemetry.Expose(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "test_durations_seconds" {
			continue
		}
		if len(f.GetMetric()) != 1 || f.GetHelp() != "What a test recorded." {
			t.Fatalf("the histogram is %v", f)
		}
		m := f.GetMetric()[0]
		if l := m.GetLabel(); len(l) != 1 || l[0].GetName() != "of" || l[0].GetValue() != "fast" {
			t.Errorf("the labels are %v", l)
		}
		h := m.GetHistogram()
		want := recorders * (time.Microsecond + 2*time.Millisecond + 1 + time.Hour).Seconds()
		if h.GetSampleCount() != 4*recorders || h.GetSampleSum() < want-1e-6 || h.GetSampleSum() > want+1e-6 {
			t.Errorf("%d durations, %v s in all; want %d and %v", h.GetSampleCount(), h.GetSampleSum(), 4*recorders, want)
		}
		got := make(map[float64]uint64)
		for _, b := range h.GetBucket() {
			got[b.GetUpperBound()] = b.GetCumulativeCount()
		}
		// A bound belongs to the bucket below it.
		if got[0.001] != 2*recorders || got[1] != 3*recorders {
			t.Errorf("the buckets are %v", got)
		}
		return
	}
	t.Error("the histogram is not collected")
}
