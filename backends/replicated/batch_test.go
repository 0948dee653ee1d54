package replicated

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockgateway/lockgateway/lock"
)

// TestBatchIsItsRequestsOneAtATime hands random batches to the core of one
// gateway, and the requests one at a time, in the order of a batch, to a naive
// lock.
func TestBatchIsItsRequestsOneAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { batchHistory(t, 1) })
}

// TestBatchesOfTwoGatewaysAreTheirRequestsOneAtATime does the same with two
// gateways, whose swaps conflict.
func TestBatchesOfTwoGatewaysAreTheirRequestsOneAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { batchHistory(t, 2) })
}

func batchHistory(t *rapid.T, gateways int) {
	limit := rapid.Int64Range(1, 3).Draw(t, "max")
	h := &batchRun{naive: &naiveLock{max: limit, fresh: true}, store: &plainRegister{clock: 10}, tokens: make(map[*naiveSlot]uint64)}
	linear := rapid.Bool().Draw(t, "linearizable")
	requests := new(uint64)
	for i := range gateways {
		g := &batcher{run: h, plainGateway: newPlainGateway(t, limit, linear, SessionID(100+i), h.store)}
		g.requests = requests
		// A name that another gateway waits with is never released: it cannot
		// always tell a withdrawn place from one that was granted since.
		g.names = []string{"", "shared", "shared", []string{"a", "b"}[i]}
		g.released = []string{"", g.names[3]}
		h.gateways = append(h.gateways, g)
	}
	each := func(f func(*batcher, *rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) { f(h.gateways[rapid.IntRange(0, gateways-1).Draw(t, "gateway")], t) }
	}
	if gateways == 1 {
		h.gateways[0].released = append(h.gateways[0].released, "shared")
	}
	t.Repeat(map[string]func(*rapid.T){
		"acquire": each((*batcher).acquire), "acquire too": each((*batcher).acquire), "acquire as well": each((*batcher).acquire),
		"cancel": each((*batcher).cancel), "give back": each((*batcher).giveBack), "release": each((*batcher).release),
		"reset": each((*batcher).reset), "value": each((*batcher).value),
		"step": each((*batcher).step), "step again": each((*batcher).step), "work": each(func(g *batcher, _ *rapid.T) { g.work() }),
		"": h.check,
	})
	for range 3 {
		for _, g := range h.gateways {
			g.work()
		}
	}
	h.check(t)
	h.checkEnd(t)
}

// batchRun is gateways with one record, and the naive lock.
type batchRun struct {
	naive    *naiveLock
	store    *plainRegister
	gateways []*batcher
	tokens   map[*naiveSlot]uint64
}

// batcher is a gateway, and what was asked of it.
type batcher struct {
	*plainGateway
	run             *batchRun
	names, released []string
	ops             []*batchOp
	flying          []batchOp // as they were when the swap was sent
}

// batchOp is a request, and what the naive lock makes of it.
type batchOp struct {
	*request
	self     *batchOp
	wait     *naiveWait // of an acquire
	given    *batchOp   // what a give-back gives back
	tries    bool
	leaves   bool
	returned bool // it was given back

	ran     bool // the naive lock has carried it out
	limited bool
	freed   bool       // of a release
	sees    lock.Value // of a value
}

func (g *batcher) ask(k kind, holder string) *batchOp {
	op := &batchOp{request: g.request(k, holder)}
	op.self = op
	g.ops = append(g.ops, op)
	return op
}

func (g *batcher) acquire(t *rapid.T) {
	op := g.ask(acquireRequest, rapid.SampledFrom(g.names).Draw(t, "name"))
	op.tries = rapid.IntRange(0, 4).Draw(t, "try") == 0
	op.try = op.tries
	op.maxWaiters = rapid.SampledFrom([]int64{0, 0, 1, 3}).Draw(t, "max waiters")
	op.wait = &naiveWait{session: g.core.session, name: op.holder}
	g.core.add(op.request)
}

func (g *batcher) release(t *rapid.T) {
	g.core.add(g.ask(releaseRequest, rapid.SampledFrom(g.released).Draw(t, "name")).request)
}

func (g *batcher) reset(*rapid.T) { g.core.add(g.ask(resetRequest, "").request) }

func (g *batcher) value(*rapid.T) { g.core.add(g.ask(valueRequest, "").request) }

func (g *batcher) pick(t *rapid.T, so func(*batchOp) bool) *batchOp {
	var list []*batchOp
	for _, op := range g.ops {
		if op.wait != nil && so(op) {
			list = append(list, op)
		}
	}
	if len(list) == 0 {
		t.Skip("none")
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(t, "which")]
}

func (g *batcher) cancel(t *rapid.T) {
	op := g.pick(t, func(op *batchOp) bool { return op.phase != done && !op.leaves })
	op.leaves = true
	g.core.leave(op.request, false)
}

func (g *batcher) giveBack(t *rapid.T) {
	op := g.pick(t, func(op *batchOp) bool { return op.phase == done && op.answer.acquired.Acquired && !op.returned })
	op.returned = true
	back := g.ask(giveBackRequest, op.holder)
	back.given = op
	back.era, back.token = op.answer.acquired.Mark, op.answer.acquired.Token
	g.core.add(back.request)
}

// step is one swap sent or landed. A plan may rest on an old record, unless a
// newer one has confirmed some request already: what that is answered with is
// true, but of the past.
func (g *batcher) step(t *rapid.T) {
	stale := rapid.Bool().Draw(t, "stale")
	if g.core.flight != nil {
		g.land()
		return
	}
	g.advance(stale && !slices.ContainsFunc(g.core.pending, func(r *request) bool { return r.confirmed }))
}

// advance plans, until there is a swap in flight or nothing to do.
func (g *batcher) advance(stale bool) bool {
	if !stale {
		g.follow()
	}
	for range 1000 {
		switch g.plan() {
		case nothing:
			return false
		case sendSwap:
			g.flying = nil
			for _, op := range g.ops {
				if !op.ran || op.leaves && op.wait.state == naiveWaiting {
					g.flying = append(g.flying, *op)
				}
			}
			return true
		default:
			var answered []batchOp
			for _, op := range g.ops {
				if !op.ran && op.phase == done {
					answered = append(answered, *op)
				}
			}
			g.run.execute(g.core.session, answered)
		}
	}
	g.t.Fatal("there is no end of answers")
	return false
}

func (g *batcher) land() {
	if g.plainGateway.land() {
		g.run.execute(g.core.session, g.flying)
		g.run.checkHolders(g.t)
	} else {
		g.advance(false)
	}
}

func (g *batcher) work() {
	for range 1000 {
		if g.core.flight == nil && !g.advance(false) {
			return
		}
		g.land()
	}
	g.t.Fatal("there is no end of work")
}

// execute has the naive lock carry out a batch.
func (h *batchRun) execute(s SessionID, batch []batchOp) {
	kinds := func(k kind) (list []batchOp) {
		for _, op := range batch {
			if op.kind == k && !op.ran {
				list = append(list, op)
				op.self.ran = true
			}
		}
		return list
	}
	for _, op := range kinds(giveBackRequest) {
		h.naive.giveBack(op.given.wait)
	}
	for range kinds(resetRequest) {
		h.naive.reset()
	}
	for _, op := range kinds(releaseRequest) {
		op.self.freed = h.naive.release(op.holder)
	}
	for _, op := range batch {
		if op.ran {
			h.naive.cancel(op.wait, naiveRefused)
		}
	}
	h.naive.answerShared(s)
	var others []batchOp
	for _, op := range kinds(acquireRequest) {
		op.tries = op.tries || op.leaves
		switch i := slices.IndexFunc(h.naive.queue, func(p *naivePlace) bool { return p.name == op.holder }); {
		case op.holder == "" || i < 0:
			others = append(others, op)
		case op.tries:
			op.wait.state = naiveRefused
		default:
			h.naive.enqueue(op.wait)
		}
	}
	h.naive.claim(s)
	for _, op := range others {
		repeats := op.holder != "" && h.naive.slot(op.holder) != nil
		waits := !repeats && (h.naive.room() <= 0 || h.naive.place(op.holder) != nil)
		switch {
		case op.tries && !repeats && (waits || len(h.naive.queue) > 0): // a try overtakes nobody
			op.wait.state = naiveRefused
		case waits && h.naive.place(op.holder) == nil && op.maxWaiters > 0 && int64(len(h.naive.queue)) >= op.maxWaiters:
			op.wait.state, op.self.limited = naiveRefused, true
		default:
			h.naive.enqueue(op.wait)
			h.naive.claim(s)
		}
	}
	for _, op := range kinds(valueRequest) {
		op.self.sees = h.naive.value()
	}
}

func (l *naiveLock) value() lock.Value {
	if l.fresh {
		return lock.Value{Fresh: true}
	}
	return lock.Value{Held: l.held(), Waiting: int64(len(l.queue))}
}
