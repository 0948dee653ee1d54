package replicated

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lockgateway/lockgateway/internal/telemetry"
)

// meters count and time what the engine does with its store.
type meters struct {
	swaps       metric.Int64Counter
	duration    metric.Float64Histogram
	batch       metric.Int64Histogram
	settlements metric.Int64Counter
	gaps        metric.Int64Counter
	rereads     metric.Int64Counter
	sessions    metric.Int64Counter

	backend    metric.MeasurementOption
	ofSwaps    map[string]metric.MeasurementOption // by outcome
	ofVerdicts [undecidable + 1]metric.MeasurementOption
}

// The outcomes of an attempt of a swap.
const (
	swapApplied = "applied"
	swapRefused = "conflict" // the record had another revision
	swapFailed  = "failed"   // certainly not applied
	swapUnknown = "unknown"  // no answer, or one that leaves it open
)

func newMeters(name string, meter metric.Meter) *meters {
	if meter == nil {
		meter = noop.Meter{}
	}
	i := telemetry.Instruments{Meter: meter}
	m := &meters{
		swaps: i.Counter("lock_gateway.store.swaps", "{swap}",
			"Attempts to swap the record of a lock."),
		duration: i.Seconds("lock_gateway.store.swap.duration",
			"Time until the store answered an attempt to swap.",
			100e-6, 300e-6, 1e-3, 3e-3, 10e-3, 30e-3, 0.1, 0.3, 1, 3, 10),
		batch: i.Sizes("lock_gateway.store.batch.size", "{request}",
			"Requests that a swap was for.", 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
		settlements: i.Counter("lock_gateway.store.settlements", "{swap}",
			"Swaps of which there was no answer, by what was found out about them."),
		gaps: i.Counter("lock_gateway.store.follow.gaps", "{gap}",
			"Times that the instance may have missed changes of a record that it follows, or that the record was removed."),
		rereads: i.Counter("lock_gateway.store.rereads", "{read}",
			"Reads of records that somebody waits for, made since nothing was heard of them."),
		sessions: i.Counter("lock_gateway.store.sessions.lost", "{session}",
			"Sessions of this instance that the store ended, with the places of its waiters."),
	}
	backend := attribute.String(telemetry.BackendKey, name)
	set := func(of ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(of, backend)...))
	}
	m.backend = set()
	m.ofSwaps = make(map[string]metric.MeasurementOption)
	for _, o := range []string{swapApplied, swapRefused, swapFailed, swapUnknown} {
		m.ofSwaps[o] = set(attribute.String("outcome", o))
	}
	for v, o := range map[verdict]string{applied: "applied", refused: "not_applied", undecidable: "undecidable"} {
		m.ofVerdicts[v] = set(attribute.String("outcome", o))
	}
	m.startAtZero()
	return m
}

// startAtZero tells all counters that there was nothing yet: what first appears with
// a number does not rise, and would be no cause for an alert.
func (m *meters) startAtZero() {
	ctx := context.Background()
	for _, o := range m.ofSwaps {
		m.swaps.Add(ctx, 0, o)
	}
	for _, v := range []verdict{applied, refused, undecidable} {
		m.settlements.Add(ctx, 0, m.ofVerdicts[v])
	}
	for _, c := range []metric.Int64Counter{m.gaps, m.rereads, m.sessions} {
		c.Add(ctx, 0, m.backend)
	}
}

// attempted counts an attempt of a swap, the first one of it if first is set.
func (m *meters) attempted(ctx context.Context, outcome string, took time.Duration, first bool, requests int) {
	m.swaps.Add(ctx, 1, m.ofSwaps[outcome])
	m.duration.Record(ctx, took.Seconds(), m.backend)
	if first {
		m.batch.Record(ctx, int64(requests), m.backend)
	}
}
