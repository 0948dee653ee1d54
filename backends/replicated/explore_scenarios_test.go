//go:build !race

package replicated

import (
	"flag"
	"testing"
)

var (
	exploreLong   = flag.Bool("explore.long", false, "explore the large scenarios, too; takes long")
	exploreTraces = flag.Bool("explore.traces", false, "print, with -v, how the deliberate mistakes are seen")
	exploreLimit  = flag.Int("explore.limit", 20_000_000, "the most situations of a scenario")
)

// scenario is a small world: who asks for what, and what may go wrong.
type scenario struct {
	name    string
	max     int64
	clients []spec
	left    budget
	loose   bool // the store is like NATS: no linearizable reads, no fence
	stale   bool // reads, events and refused swaps may show the record before
	watch   bool // news come also while a swap is in flight
	long    bool

	broken breakage
	ignore violation
	expect violation // 0: none may be seen
}

func (sc *scenario) gatewayCount() int {
	n := 0
	for _, q := range sc.clients {
		n = max(n, q.gateway+1)
	}
	return n
}

// maxSessions bounds how many sessions are opened.
func (sc *scenario) maxSessions() SessionID {
	return SessionID(sc.gatewayCount()) + SessionID(sc.left.crashes+sc.left.ends)
}

func a(g int) spec { return spec{kind: acquireRequest, gateway: g} }
func h(g int, after ...int) spec {
	return spec{kind: acquireRequest, gateway: g, holder: "h", after: after}
}
func named(g int, name string) spec { return spec{kind: acquireRequest, gateway: g, holder: name} }
func tryh(g int) spec               { return spec{kind: acquireRequest, gateway: g, holder: "h", try: true} }
func ht(g int, after ...int) spec {
	return spec{kind: acquireRequest, gateway: g, holder: "h", ttl: true, after: after}
}
func try(g int) spec               { return spec{kind: acquireRequest, gateway: g, try: true} }
func rel(g int, after ...int) spec { return spec{kind: releaseRequest, gateway: g, after: after} }
func relh(g int, after ...int) spec {
	return spec{kind: releaseRequest, gateway: g, holder: "h", after: after}
}
func reset(g int) spec { return spec{kind: resetRequest, gateway: g} }
func value(g int) spec { return spec{kind: valueRequest, gateway: g} }

func scenarios() []*scenario {
	var list []*scenario
	for max := int64(1); max <= 2; max++ {
		large := false
		add := func(sc scenario) {
			if sc.long = large; large {
				sc.name = "large " + sc.name
			}
			sc.name += map[int64]string{1: "/mutex", 2: "/semaphore"}[max]
			sc.max = max
			list = append(list, &sc)
		}
		// The last release is a stranger's, who may take anybody's slot: on a
		// semaphore, with two give-backs, that is known to take one too many.
		strangers := uint8(3 - max)

		add(scenario{name: "plain", clients: []spec{a(0), a(1), rel(0), rel(1)}, left: budget{gones: strangers}})
		add(scenario{name: "old news", clients: []spec{a(0), a(1), a(1), rel(0)}, left: budget{gones: 1}, stale: true, watch: true})
		add(scenario{name: "stale", clients: []spec{a(0), a(1), rel(0)}, left: budget{gones: 1}, stale: true, loose: true})
		add(scenario{name: "doubt", clients: []spec{a(0), a(1), rel(0)}, left: budget{gones: 1, faults: 1}})
		add(scenario{name: "loose doubt", clients: []spec{a(0), a(1)}, left: budget{gones: 1, faults: 2}, loose: true, watch: true})
		add(scenario{name: "time out", clients: []spec{a(0), a(1), a(1), rel(0)}, left: budget{timeouts: 1}})
		add(scenario{name: "silence", clients: []spec{a(0), a(1), rel(0)}, left: budget{silences: 1, faults: 1}})
		add(scenario{name: "crash", clients: []spec{a(0), a(1), rel(0)}, left: budget{crashes: 1}})
		add(scenario{name: "session", clients: []spec{a(0), a(1)}, left: budget{ends: 1, faults: 1}})
		add(scenario{name: "pruned alive", clients: []spec{a(0), a(1), rel(0)}, left: budget{lies: 1, gones: 1}})
		add(scenario{name: "reset", clients: []spec{a(0), a(1), a(1), reset(0)}})
		add(scenario{name: "named", clients: []spec{h(0), h(1), relh(0)}, left: budget{gones: 2}})
		add(scenario{name: "named doubt", clients: []spec{h(0), h(1), relh(1)}, left: budget{faults: 1}})
		add(scenario{name: "named again", clients: []spec{h(0), h(1), relh(1)}, left: budget{gones: 1, faults: 1}})
		add(scenario{name: "named at home", clients: []spec{a(1), h(0), h(0), relh(0)}, left: budget{gones: 1}})
		add(scenario{name: "named retry", clients: []spec{h(0), h(1), h(1, 0), a(0)}, left: budget{gones: 1}})
		add(scenario{name: "named reset", clients: []spec{h(0), h(1), reset(1)}, left: budget{gones: 1}})
		add(scenario{name: "named session", clients: []spec{h(0), h(1)}, left: budget{ends: 1, gones: 1}})
		add(scenario{name: "try", clients: []spec{a(0), try(1), rel(0)}, left: budget{gones: 1}})
		add(scenario{name: "loose try", clients: []spec{a(0), try(1), rel(0)}, loose: true, stale: true})
		add(scenario{name: "value", clients: []spec{a(0), value(1), rel(0), reset(1)}})
		add(scenario{name: "loose value", clients: []spec{a(0), value(1), rel(1)}, left: budget{faults: 1}, loose: true, stale: true})
		add(scenario{name: "forgotten", clients: []spec{a(0), a(1), rel(1, 1), rel(0, 0)}, left: budget{forgets: 1, faults: 1}})
		add(scenario{name: "ttl", clients: []spec{ht(0), a(1)}, left: budget{expiries: 1, faults: 1}})
		add(scenario{name: "ttl retry", clients: []spec{ht(0), ht(1)}, left: budget{expiries: 1, gones: 1}})
		add(scenario{name: "ttl value", clients: []spec{ht(0), value(1), try(0)}, left: budget{expiries: 1}})

		large = true
		add(scenario{name: "plain", clients: []spec{a(0), a(0), a(1), rel(0), rel(1)}, left: budget{gones: strangers}})
		add(scenario{name: "stale", clients: []spec{a(0), a(1), a(1), rel(0)}, left: budget{gones: 1, faults: 1}, stale: true, loose: true})
		add(scenario{name: "old news", clients: []spec{a(0), a(1), a(1), rel(0)}, left: budget{gones: 1}, stale: true, watch: true})
		add(scenario{name: "doubt", clients: []spec{a(0), a(1), a(1), rel(0)}, left: budget{gones: 1, faults: 2}})
		add(scenario{name: "loose doubt", clients: []spec{a(0), a(1), rel(0)}, left: budget{gones: 1, faults: 2}, loose: true, watch: true})
		add(scenario{name: "doubt give-back", clients: []spec{a(0), a(1), rel(1), rel(1)}, left: budget{gones: strangers, faults: 2}})
		add(scenario{name: "honest release", clients: []spec{a(0), a(1), a(1), rel(1, 0), rel(0, 1)}, left: budget{gones: 2, faults: 1}})
		add(scenario{name: "time out", clients: []spec{a(0), a(1), a(1), rel(0)}, left: budget{timeouts: 2, faults: 1}})
		add(scenario{name: "silence", clients: []spec{a(0), a(1), rel(0)}, left: budget{silences: 2, faults: 1}})
		add(scenario{name: "crash", clients: []spec{a(0), a(1), rel(1)}, left: budget{crashes: 1, faults: 1, gones: 1}})
		add(scenario{name: "crash waiters", clients: []spec{a(0), a(1), a(1), rel(0)}, left: budget{crashes: 1}})
		add(scenario{name: "session", clients: []spec{a(0), a(1), rel(1)}, left: budget{ends: 1, faults: 1, gones: 1}})
		add(scenario{name: "crash session", clients: []spec{a(0), a(1), rel(0)}, left: budget{crashes: 1, ends: 1}})
		add(scenario{name: "pruned alive", clients: []spec{a(0), a(1), a(1), rel(1)}, left: budget{lies: 1, faults: 1, gones: 1}})
		add(scenario{name: "reset", clients: []spec{a(0), a(1), a(1), reset(0)}, left: budget{gones: 1}})
		add(scenario{name: "reset doubt", clients: []spec{a(0), a(1), reset(0), rel(1)}, left: budget{gones: 1, faults: 1}})
		add(scenario{name: "named", clients: []spec{h(0), h(1), a(1), relh(0)}, left: budget{gones: 2}})
		add(scenario{name: "named doubt", clients: []spec{h(0), h(1), a(1), relh(1)}, left: budget{gones: 1, faults: 1}})
		add(scenario{name: "named retry", clients: []spec{h(0), h(1), h(1, 0), a(0)}, left: budget{gones: 2}})
		add(scenario{name: "named reset", clients: []spec{h(0), h(1), a(1), reset(1)}, left: budget{gones: 1}})
		add(scenario{name: "named crash", clients: []spec{h(0), h(1), relh(1)}, left: budget{crashes: 1, gones: 1}})
		add(scenario{name: "named session", clients: []spec{h(0), h(1), a(0)}, left: budget{ends: 1, gones: 1}})
		add(scenario{name: "named time out", clients: []spec{h(0), h(1), a(1), relh(0)}, left: budget{timeouts: 1, faults: 1}})
		add(scenario{name: "two names", clients: []spec{h(0), named(1, "i"), rel(0), relh(1)}, left: budget{gones: 1, faults: 1}})
		add(scenario{name: "try", clients: []spec{a(0), try(1), a(1), rel(0)}, left: budget{gones: 1, faults: 1}})
		add(scenario{name: "try named", clients: []spec{a(0), tryh(1), h(0), rel(1)}, left: budget{gones: 1}})
		add(scenario{name: "loose try", clients: []spec{a(0), try(1), rel(0), rel(1)}, left: budget{faults: 1}, loose: true, stale: true})
		add(scenario{name: "value", clients: []spec{a(0), value(1), rel(0), reset(1)}, left: budget{gones: 1, faults: 1}})
		add(scenario{name: "loose value", clients: []spec{a(0), value(1), rel(1), value(0)}, left: budget{faults: 1}, loose: true, stale: true})
		add(scenario{name: "forgotten", clients: []spec{a(0), a(1), rel(1, 1), rel(0, 0)}, left: budget{forgets: 1, faults: 1}})
		add(scenario{name: "forgotten value", clients: []spec{a(0), rel(1), value(1), reset(0)}, left: budget{forgets: 1, faults: 1}})
		add(scenario{name: "ttl", clients: []spec{ht(0), a(1), a(1)}, left: budget{expiries: 1, gones: 1}})
		add(scenario{name: "ttl doubt", clients: []spec{ht(0), a(1)}, left: budget{expiries: 1, faults: 2}})
		add(scenario{name: "ttl retry", clients: []spec{ht(0), ht(1), a(1)}, left: budget{expiries: 1, gones: 1}})
		add(scenario{name: "ttl renewal", clients: []spec{ht(0), ht(1, 0), h(0, 0), try(1)}, left: budget{expiries: 2}})
		add(scenario{name: "ttl value", clients: []spec{ht(0), value(1), relh(1), try(0)}, left: budget{expiries: 1}})
		add(scenario{name: "ttl crash", clients: []spec{ht(0), a(1), relh(1)}, left: budget{expiries: 1, crashes: 1}})
		add(scenario{name: "ttl silence", clients: []spec{ht(0), ht(1), relh(1)}, left: budget{expiries: 1, silences: 1}})
		add(scenario{name: "loose ttl", clients: []spec{ht(0), ht(1), a(1)}, left: budget{expiries: 1, faults: 1}, loose: true})
		add(scenario{name: "crash", clients: []spec{a(0), a(1), a(1), rel(1)}, left: budget{crashes: 1, faults: 1, gones: 1}})
		add(scenario{name: "session", clients: []spec{a(0), a(1), rel(1), rel(0)}, left: budget{ends: 1, faults: 1, gones: 1}})
		add(scenario{name: "named doubt", clients: []spec{h(0), h(1), a(1), relh(1)}, left: budget{gones: 2, faults: 2}})
		add(scenario{name: "named crash", clients: []spec{h(0), h(1), a(1), relh(1)}, left: budget{crashes: 1, faults: 1, gones: 1}})
	}
	return list
}

func TestExplore(t *testing.T) {
	roomy(t)
	for _, sc := range scenarios() {
		if sc.long && !*exploreLong {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			testScenario(t, sc, *exploreLimit)
		})
	}
}
