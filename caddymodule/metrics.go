package caddymodule

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockgateway/lockgateway/internal/lockhttp"
	"github.com/lockgateway/lockgateway/internal/telemetry"
	"github.com/lockgateway/lockgateway/lock"
)

// outcome is how an operation ended. There are no others: each is a value of an
// attribute of metrics and spans, as docs/operations.md lists them.
type outcome uint8

const (
	acquired    outcome = iota
	busy                // an acquire that does not wait found no free slot
	timedOut            // its wait was over
	withdrawn           // the lock was reset while it waited, or its holder released
	released            // a slot was freed
	notHeld             // there was no such slot to release
	done                // value, reset
	clientGone          // the client went away before its answer; from here on it went wrong
	limited             // a limit of the operator's refused it; this and all that follow are errors
	closing             // the process exits, or its config was replaced
	unavailable         // the backend cannot serve; nothing was changed
	unknown             // the backend stopped answering
	outcomes            // their number
)

var outcomeNames = [outcomes]string{
	"acquired", "busy", "timed_out", "withdrawn", "released", "not_held", "done",
	"client_gone", "limited", "closing", "unavailable", "unknown",
}

var actionNames = [...]string{
	lockhttp.Acquire: "acquire", lockhttp.Release: "release", lockhttp.Value: "value", lockhttp.Reset: "reset",
}

// instruments are those of the handlers, of all configs of the process, that are told
// what happens. The others are asked at every scrape.
type instruments struct {
	duration  *telemetry.Durations
	wait      *telemetry.Durations
	givenBack metric.Int64Counter
}

// handlerInstruments makes the instruments once, together with those that are asked
// for their values at every scrape.
var handlerInstruments = sync.OnceValue(func() *instruments {
	const us, ms, s = time.Microsecond, time.Millisecond, time.Second
	m := telemetry.Instruments{Meter: telemetry.Meter()}
	operations := m.ObservableCounter("lock_gateway.operations", "{operation}",
		"Operations that were answered, or whose client went away.")
	waiting := m.Gauge("lock_gateway.requests.waiting", "{request}",
		"Acquires under way that are ready to wait.")
	held := m.Gauge("lock_gateway.slots.held", "{slot}",
		"Slots held, as far as this instance knows: with memory all; with etcd and NATS those of locks that somebody waits for here, which several instances may tell: take the greatest, not the sum.")
	queued := m.Gauge("lock_gateway.places.queued", "{place}",
		"Places in queues of this instance's waiters; the sum over instances is that of all.")
	oldestHold := m.SecondsGauge("lock_gateway.hold.age.max",
		"Age of the longest-held of these slots whose age is known: those with a holder's name, and those of locks with one slot; 0 if there is none.")
	oldestWait := m.SecondsGauge("lock_gateway.wait.age.max",
		"Age of the longest-waiting acquire; 0 if there is none.")
	ready := m.Gauge("lock_gateway.backend.ready", "",
		"1 if the backend answered when it was last asked, the instance has a session there, and, as a node of a cluster, has caught up with the others; 0 if not.")
	m.Observe(func(_ context.Context, o metric.Observer) error {
		for name, s := range summarize() {
			attributes := metric.WithAttributes(attribute.String(telemetry.BackendKey, name))
			o.ObserveInt64(waiting, s.requests, attributes)
			o.ObserveInt64(held, s.Held, attributes)
			o.ObserveInt64(queued, s.Waiting, attributes)
			o.ObserveFloat64(oldestHold, s.OldestHold.Seconds(), attributes)
			o.ObserveFloat64(oldestWait, s.OldestWait.Seconds(), attributes)
			o.ObserveInt64(ready, s.ready, attributes)
		}
		allMeters.mu.Lock()
		defer allMeters.mu.Unlock()
		for _, m := range allMeters.of {
			m.observe(o, operations)
		}
		return nil
	}, operations, waiting, held, queued, oldestHold, oldestWait, ready)
	return &instruments{
		duration: telemetry.NewDurations("lock_gateway.operation.duration",
			"Time that operations took, without the backend's part of acquires that are ready to wait.",
			10*us, 30*us, 100*us, 300*us, ms, 3*ms, 10*ms, 30*ms, 100*ms, 300*ms, s, 3*s, 10*s),
		wait: telemetry.NewDurations("lock_gateway.acquire.wait.duration",
			"Time that acquires which are ready to wait took in the backend, until it had an answer.",
			100*us, 300*us, ms, 3*ms, 10*ms, 30*ms, 100*ms, 300*ms, s, 3*s, 10*s, 30*s, 60*s, 300*s, 900*s, 3600*s),
		givenBack: m.Counter("lock_gateway.grants.given_back", "{grant}",
			"Slots that were given back as the client had gone before it could be told that it has one."),
	}
})

// summary is what is known of all instances of one kind of backend.
type summary struct {
	lock.Summary
	requests int64
	ready    int64
}

func summarize() map[string]summary {
	all := make(map[string]summary)
	opened.Range(func(_, value any) bool {
		i := value.(*instance)
		s, known := all[i.module]
		if !known {
			s.ready = 1
		}
		s.requests += i.waiting.Load()
		if inspector, ok := i.backend.(lock.Inspector); ok {
			own := inspector.Summary()
			s.Held += own.Held
			s.Waiting += own.Waiting
			s.OldestHold = max(s.OldestHold, own.OldestHold)
			s.OldestWait = max(s.OldestWait, own.OldestWait)
		}
		if i.backend.Ready() != nil {
			s.ready = 0
		}
		all[i.module] = s
		return true
	})
	return all
}

// meters counts and times the operations on the backends of one module.
type meters struct {
	*instruments
	// counts is what the counter of operations reads when it is collected: telling
	// it of each operation takes it twenty times as long.
	counts    [len(actionNames)][outcomes]atomic.Int64
	backend   attribute.KeyValue
	durations [len(actionNames)]*telemetry.DurationSeries
	waits     [outcomes]*telemetry.DurationSeries
	ofBackend metric.MeasurementOption
}

// allMeters are those of the process, by the module's name.
var allMeters struct {
	mu sync.Mutex // guards of
	of map[string]*meters
}

// metersOf returns the meters of a backend module.
func metersOf(module string) *meters {
	instruments := handlerInstruments()
	allMeters.mu.Lock()
	defer allMeters.mu.Unlock()
	if m := allMeters.of[module]; m != nil {
		return m
	}
	m := &meters{instruments: instruments, backend: attribute.String(telemetry.BackendKey, module)}
	for a := lockhttp.Acquire; int(a) < len(actionNames); a++ { // there is no action 0
		m.durations[a] = m.duration.Of(m.backend, attribute.String("action", actionNames[a]))
	}
	for o, outcome := range outcomeNames {
		m.waits[o] = m.wait.Of(m.backend, attribute.String("outcome", outcome))
	}
	m.ofBackend = metric.WithAttributeSet(attribute.NewSet(m.backend))
	m.givenBack.Add(context.Background(), 0, m.ofBackend) // that there was none yet
	if allMeters.of == nil {
		allMeters.of = make(map[string]*meters)
	}
	allMeters.of[module] = m
	return m
}

// observe tells the counter of operations how many there were, of those kinds that
// there were any of. Of what may go wrong it tells also that there was none: what
// first appears with a number does not rise, and would be no cause for an alert.
func (m *meters) observe(to metric.Observer, operations metric.Int64Observable) {
	for a := lockhttp.Acquire; int(a) < len(m.counts); a++ {
		for o := range m.counts[a] {
			if n := m.counts[a][o].Load(); n > 0 || outcome(o) >= clientGone {
				to.ObserveInt64(operations, n, metric.WithAttributes(m.backend,
					attribute.String("action", actionNames[a]), attribute.String("outcome", outcomeNames[o])))
			}
		}
	}
}

// moduleName is the last part of a module's ID: memory, etcd or nats.
func moduleName(m caddy.Module) string {
	id := string(m.CaddyModule().ID)
	return id[strings.LastIndexByte(id, '.')+1:]
}

// finished counts an operation. Waited is the backend's part of an acquire that was
// ready to wait; zero for all else.
func (m *meters) finished(action lockhttp.Action, o outcome, took, waited time.Duration) {
	m.counts[action][o].Add(1)
	m.durations[action].Record(took - waited)
	if waited > 0 {
		m.waits[o].Record(waited)
	}
}
