package telemetry

import "go.opentelemetry.io/otel/metric"

// Instruments makes instruments of a meter. Making one fails only if its name or
// unit is not valid, which a test of each shows; so these panic.
type Instruments struct{ metric.Meter }

// Counter makes a counter.
func (i Instruments) Counter(name, unit, help string) metric.Int64Counter {
	return must(i.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help)))
}

// ObservableCounter makes a counter that is read when it is collected; see Observe.
func (i Instruments) ObservableCounter(name, unit, help string) metric.Int64ObservableCounter {
	return must(i.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(help)))
}

// Seconds makes a histogram of durations.
func (i Instruments) Seconds(name, help string, bounds ...float64) metric.Float64Histogram {
	return must(i.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...)))
}

// Sizes makes a histogram of numbers of something.
func (i Instruments) Sizes(name, unit, help string, bounds ...float64) metric.Int64Histogram {
	return must(i.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...)))
}

// Gauge makes a gauge that is read when it is collected; see Observe.
func (i Instruments) Gauge(name, unit, help string) metric.Int64ObservableGauge {
	return must(i.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help)))
}

// SecondsGauge makes a gauge of a duration, likewise.
func (i Instruments) SecondsGauge(name, help string) metric.Float64ObservableGauge {
	return must(i.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(help)))
}

// Observe has a callback asked for the values of instruments, as long as the process
// lives.
func (i Instruments) Observe(read metric.Callback, of ...metric.Observable) {
	must(i.RegisterCallback(read, of...))
}

func must[T any](instrument T, err error) T {
	if err != nil {
		panic(err)
	}
	return instrument
}
