package replicated_test

import (
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
	"github.com/lockgateway/lockgateway/lock"
)

// counted returns the sum of a counter, or the number of samples of a histogram, over
// those points that have the outcome; "" is all.
func counted(t *testing.T, reader *sdkmetric.ManualReader, name, outcome string) (n int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					if v, _ := p.Attributes.Value("outcome"); outcome == "" || v.AsString() == outcome {
						n += p.Value
					}
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					n += int64(p.Count)
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					n += p.Sum
				}
			}
		}
	}
	return n
}

func TestTheStoreIsMetered(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		reader := sdkmetric.NewManualReader()
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		store := w.cluster.Open()
		g := replicated.New(store, replicated.Options{RequestTimeout: requestTimeout, Name: "test", Meter: provider.Meter("")})
		w.stores, w.gates = append(w.stores, store), append(w.gates, g)
		time.Sleep(time.Second) // its session is open

		expect := func(name, outcome string, want int64) {
			t.Helper()
			synctest.Wait() // what is counted comes after the answer
			if got := counted(t, reader, "lock_gateway.store."+name, outcome); got != want {
				t.Errorf("%s (%s) counts %d; want %d", name, outcome, got, want)
			}
		}
		w.take(g, "")
		waiter := w.begin(g, w.request("", lock.Forever))
		expect("swaps", "applied", 2)
		expect("batch.size", "", 2) // summed up
		w.release(w.gates[0], "", true)
		waiter.acquired()
		expect("swaps", "applied", 3)
		w.release(w.gates[0], "", true)

		// It starts from an old record.
		time.Sleep(20 * time.Second) // it does not follow it any more
		w.begin(w.gates[0], w.request("other", 0)).acquired()
		w.release(w.gates[0], "other", true)
		w.take(g, "")
		expect("swaps", "conflict", 1)

		// An answer is lost.
		w.cluster.SetFaults(hostile.Faults{DropReply: 1, Budget: 1})
		w.release(g, "", true)
		w.cluster.SetFaults(hostile.Faults{})
		expect("swaps", "unknown", 1)
		expect("settlements", "applied", 1)

		w.cluster.EndSessions(store)
		time.Sleep(time.Second)
		expect("sessions.lost", "", 1)
		if swaps, timed := counted(t, reader, "lock_gateway.store.swaps", ""), counted(t, reader, "lock_gateway.store.swap.duration", ""); swaps != timed {
			t.Errorf("%d swaps, of which %d are timed", swaps, timed)
		}
	})
}
