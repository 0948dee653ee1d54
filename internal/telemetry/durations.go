package telemetry

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Durations is a histogram for what happens with every request. To record a duration
// is two atomic additions; the histograms of OpenTelemetry's SDK look attributes and
// the context's span up and lock a mutex, ten times as long together, and have no
// kind that is read when it is collected. It reaches the SDK as a metric of an
// external source, without exemplars.
type Durations struct {
	name, help string
	bounds     []time.Duration
	started    time.Time

	mu     sync.Mutex // guards series
	series []*DurationSeries
}

// DurationSeries are the durations with the same attributes. It may be used by any
// number of goroutines.
type DurationSeries struct {
	attributes attribute.Set
	bounds     []time.Duration
	counts     []atomic.Uint64 // by bucket; the last is above all bounds
	sum        atomic.Uint64   // the bits of a float64: seconds
}

// NewDurations makes a histogram, in seconds, whose buckets have these upper bounds.
// It is exported as long as the process lives.
func NewDurations(name, help string, bounds ...time.Duration) *Durations {
	d := &Durations{name: name, help: help, bounds: bounds, started: time.Now()}
	process().external.add(d)
	return d
}

// Of adds a series, which appears with its first duration. It is to be called once
// for the same attributes.
func (d *Durations) Of(attributes ...attribute.KeyValue) *DurationSeries {
	s := &DurationSeries{
		attributes: attribute.NewSet(attributes...),
		bounds:     d.bounds,
		counts:     make([]atomic.Uint64, len(d.bounds)+1),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.series = append(d.series, s)
	return s
}

// Record notes that something took so long.
func (s *DurationSeries) Record(took time.Duration) {
	bucket := 0
	for bucket < len(s.bounds) && took > s.bounds[bucket] {
		bucket++
	}
	s.counts[bucket].Add(1)
	for {
		before := s.sum.Load()
		if s.sum.CompareAndSwap(before, math.Float64bits(math.Float64frombits(before)+took.Seconds())) {
			return
		}
	}
}

func (d *Durations) collect(now time.Time) metricdata.Metrics {
	bounds := make([]float64, len(d.bounds))
	for i, b := range d.bounds {
		bounds[i] = b.Seconds()
	}
	data := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.series {
		p := metricdata.HistogramDataPoint[float64]{
			Attributes: s.attributes, StartTime: d.started, Time: now,
			Bounds: bounds, BucketCounts: make([]uint64, len(s.counts)),
		}
		for i := range s.counts {
			p.BucketCounts[i] = s.counts[i].Load()
			p.Count += p.BucketCounts[i]
		}
		if p.Count == 0 {
			continue
		}
		p.Sum = math.Float64frombits(s.sum.Load())
		data.DataPoints = append(data.DataPoints, p)
	}
	return metricdata.Metrics{Name: d.name, Description: d.help, Unit: "s", Data: data}
}

// external is the source of all Durations of the process.
type external struct {
	mu  sync.Mutex // guards all
	all []*Durations
}

func (e *external) add(d *Durations) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, d)
}

// Produce implements metric.Producer of the SDK.
func (e *external) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	scope := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: Name}}
	for _, d := range e.all {
		scope.Metrics = append(scope.Metrics, d.collect(now))
	}
	return []metricdata.ScopeMetrics{scope}, nil
}
