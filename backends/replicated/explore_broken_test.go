//go:build !race

package replicated

import (
	"slices"
	"testing"
)

// breakage is a deliberate mistake, put in between the steps of a core: each
// rule of the protocol is taken away once, to see that the checks see it.
type breakage struct {
	decisions  func(*world)               // what a plan is told
	request    func(*request)             // before it is added
	beforePlan func(*gatewaySim)          // the core
	flight     func(*gatewaySim, *flight) // before it is encoded
	sent       func(*gatewaySim, *sent)   // what a swap is for, as far as the checks know

	answerEarly  bool // grants are told when the swap is sent
	doubtByRead  bool // a read at the expected revision settles a swap
	noFence      bool // creates are judged without a fence
	deleteIdle   bool // an idle record is deleted at once
	keysLookGone bool // keys are taken for expired that live
	tellLate     bool // late grants are told without starting their key over
	adopt        bool // who finds its place gone takes the slot for its own
}

func breakages() []*scenario {
	return []*scenario{
		{name: "answer before commit", clients: []spec{a(0), a(0), a(1), rel(0)},
			broken: breakage{answerEarly: true}, ignore: freedEarly | keptForNobody | twice | notCommitted, expect: exclusion},
		{name: "direct grant", clients: []spec{a(0), a(1), rel(0, 0)}, left: budget{crashes: 1},
			broken: breakage{flight: grantHead, sent: grantHeadSent, adopt: true}, expect: keptForNobody},
		{name: "doubt by read", clients: []spec{a(0), a(1), rel(1)}, left: budget{faults: 1},
			broken: breakage{doubtByRead: true}, expect: twice | keptForNobody},
		{name: "create without fence", clients: []spec{a(0), a(1)}, left: budget{faults: 1, gones: 1},
			broken: breakage{noFence: true}, expect: twice | keptForNobody},
		{name: "delete on release", clients: []spec{a(0), rel(1)}, left: budget{faults: 2}, loose: true,
			broken: breakage{deleteIdle: true}, expect: twice | keptForNobody},
		{name: "overtake", clients: []spec{a(0), a(0), a(0), a(1), rel(1)},
			broken: breakage{beforePlan: ownFirst}, expect: overtaken},
		{name: "reset keeps queue", clients: []spec{a(0), a(1), a(1), reset(0)},
			broken: breakage{flight: keepQueue}, expect: oldGeneration},
		{name: "token from a counter", clients: []spec{h(0), relh(0, 0), h(1)},
			broken: breakage{flight: countTokens}, expect: tokenNotGreater},
		{name: "never prune", clients: []spec{a(1), a(1), a(0), rel(0)}, left: budget{crashes: 1},
			broken: breakage{decisions: func(w *world) { w.ended = func(SessionID) bool { return false } }}, expect: stuck},
		{name: "give-back by generation", clients: []spec{a(0), a(1), rel(0)}, left: budget{gones: 1},
			broken: breakage{beforePlan: giveBackInAnyEra}, expect: freedEarly},
		{name: "no answer counting", clients: []spec{h(0), h(1), a(1)}, left: budget{gones: 1},
			broken: breakage{flight: oneAnswer}, expect: holderLost},
		{name: "answers without token", clients: []spec{h(0), h(1), relh(1)}, left: budget{gones: 1},
			broken: breakage{beforePlan: giveBackAnyToken}, expect: holderLost},
		{name: "claim ends shared place", clients: []spec{h(0), h(1), a(1), rel(0)}, left: budget{gones: 1},
			broken: breakage{flight: dropShares}, expect: falseForWaiter},
		{name: "prune forgets batch", clients: []spec{a(0), a(1)}, left: budget{ends: 1, faults: 1},
			broken: breakage{flight: forgetBatches}, expect: keptForNobody | twice},
		{name: "prune leaves no mark", clients: []spec{a(1), h(0), rel(1)}, left: budget{ends: 1},
			broken: breakage{flight: forgetPruned}, expect: falseForWaiter},
		{name: "negative from an old record", clients: []spec{a(0), try(1), rel(0), value(1)},
			broken: breakage{request: func(r *request) { r.confirmed = true }}, expect: untrueNegative | untrueValue},
		{name: "negative from an old record, loose", clients: []spec{a(0), rel(1), rel(0)}, loose: true, stale: true,
			broken: breakage{request: func(r *request) { r.confirmed = true }}, expect: untrueNegative},
		{name: "expiry of a key that lives", clients: []spec{ht(0), a(1)}, left: budget{expiries: 1},
			broken: breakage{keysLookGone: true}, expect: holderLost},
		{name: "no look at keys", clients: []spec{ht(0), try(1), h(0)}, left: budget{expiries: 1},
			broken: breakage{decisions: func(w *world) { w.life = func(uint64) life { return alive } }}, expect: untrueNegative | endedToken},
		{name: "late grants told", clients: []spec{ht(0)}, left: budget{expiries: 1},
			broken: breakage{tellLate: true}, expect: keyRanOut},
		{name: "numbers again", clients: []spec{a(0), a(0), rel(1)}, left: budget{faults: 2},
			broken: breakage{decisions: func(w *world) { w.number = 1 }}, expect: notCommitted | falseForWaiter},
		{name: "grants without identity", clients: []spec{h(0), h(1), relh(1)}, left: budget{gones: 1, faults: 1},
			broken: breakage{flight: sameGrant}, expect: holderLost},
		{name: "generation recurs", clients: []spec{a(0), a(1), reset(0)}, left: budget{},
			broken: breakage{flight: sameGeneration}, expect: falseForWaiter},
	}
}

// sameGrant makes all grants look the same.
func sameGrant(_ *gatewaySim, f *flight) {
	for i := range f.next.holders {
		f.next.holders[i].grant = 1
	}
}

// grantHead gives a free slot to the head of the queue, whoever's it is.
func grantHead(g *gatewaySim, f *flight) {
	if i := foreignHead(g, f.next); i >= 0 {
		f.next.takeAnonymous(1)
		t := f.next.queue[i]
		f.next.leaveRun(t.session, t.run, 1)
	}
}

func foreignHead(g *gatewaySim, r *record) int {
	if len(r.queue) > 0 && r.held() < g.core.max && !r.queue[0].named() && r.queue[0].session != g.session {
		return 0
	}
	return -1
}

// grantHeadSent notes who was granted: the client whose run is not there any
// more.
func grantHeadSent(g *gatewaySim, w *sent) {
	for i := range g.world.clients {
		c := &g.world.clients[i]
		mine := g.world.sc.clients[i].gateway == g.index
		if !mine && c.order != 0 && g.core.rec != nil && g.core.rec.runTicket(c.session, c.run) >= 0 && g.core.flight.next.runTicket(c.session, c.run) < 0 {
			w.effects = append(w.effects, effect{client: i, kind: grants})
		}
	}
}

// ownFirst puts the gateway's own places at the head of the queue it knows.
func ownFirst(g *gatewaySim) {
	if r := g.core.rec; r != nil {
		slices.SortStableFunc(r.queue, func(a, b ticket) int {
			order := func(t ticket) int {
				if t.session == g.session {
					return 0
				}
				return 1
			}
			return order(a) - order(b)
		})
	}
}

// keepQueue makes a reset leave the queue and the generation.
func keepQueue(g *gatewaySim, f *flight) {
	if g.core.rec == nil || f.next.resets == g.core.rec.resets {
		return
	}
	f.next.resets = g.core.rec.resets
	f.next.queue = g.core.rec.clone().queue
	for _, o := range f.outcomes {
		o.request.flying = o.request.phase == pending
	}
	f.outcomes = slices.DeleteFunc(f.outcomes, func(o outcome) bool { return o.request.phase == queued })
}

func countTokens(_ *gatewaySim, f *flight) {
	for i := range f.next.holders {
		if h := &f.next.holders[i]; h.token == 0 {
			h.token = f.next.resets + 1
		}
	}
}

func giveBackInAnyEra(g *gatewaySim) {
	for _, r := range g.core.pending {
		if r.kind == giveBackRequest && r.holder == "" && g.core.rec != nil && !r.flying {
			r.era = g.core.rec.era()
		}
	}
}

func giveBackAnyToken(g *gatewaySim) {
	for _, r := range g.core.pending {
		if r.kind == giveBackRequest && r.holder != "" && g.core.rec != nil && !r.flying {
			if held := g.core.rec.holder(r.holder); held != nil {
				r.token = held.token
			}
		}
	}
}

func oneAnswer(_ *gatewaySim, f *flight) {
	for i := range f.next.holders {
		f.next.holders[i].answers = 1
	}
}

func dropShares(_ *gatewaySim, f *flight) {
	for i := range f.next.holders {
		f.next.holders[i].waits = nil
	}
}

func forgetBatches(g *gatewaySim, f *flight) {
	f.next.batches = slices.DeleteFunc(f.next.batches, func(b batch) bool { return g.world.over.has(b.session) })
}

func forgetPruned(_ *gatewaySim, f *flight) {
	for i := range f.next.batches {
		f.next.batches[i].pruned = false
	}
}

func sameGeneration(g *gatewaySim, f *flight) {
	if g.core.rec != nil {
		f.next.resets = g.core.rec.resets
	}
}

// TestExploreBreakages makes each mistake and expects to see what comes of it.
func TestExploreBreakages(t *testing.T) {
	roomy(t)
	for _, sc := range breakages() {
		sc.max = max(sc.max, 1)
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			testScenario(t, sc, *exploreLimit)
		})
	}
}
