//go:build !race

package replicated

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// What committer.go, expiry.go and await.go do with a core, with each call to
// the store cut in two: where it begins and where its answer is taken.

var (
	errLost    = errors.New("no answer came")
	errCertain = fmt.Errorf("the store is full: %w", ErrNotApplied)
	errOver    = fmt.Errorf("%w: %w", ErrSessionEnded, ErrNotApplied)
	errKeyGone = fmt.Errorf("%w: %w", ErrExpired, ErrNotApplied)
)

const keySlack = 100 * time.Millisecond

func (g *gatewaySim) ended(s SessionID) bool { return g.heard.has(s) }

func (g *gatewaySim) decisions() world {
	w := world{
		number: g.number + 1,
		random: uint64(g.session)<<32 | (g.number+1)<<16,
		now:    1,
		ended:  g.ended,
		life:   func(key uint64) life { return g.life[key] },
		tooOld: func(*request) bool { return false },
	}
	if b := g.world.sc.broken.decisions; b != nil {
		b(&w)
	}
	return w
}

// turn is committer.run up to the next call to the store. It reports whether
// anything happened.
func (g *gatewaySim) turn() (did string) {
	b := &g.world.sc.broken
	for {
		g.letDiscardsGo()
		switch {
		case len(g.late) > 0:
			g.call = call{kind: restartCall}
			return "starts the time of a late grant's key over"
		case g.core.flight != nil:
			return g.settle()
		}
		if b.beforePlan != nil {
			b.beforePlan(g)
		}
		s := g.core.plan(g.decisions())
		g.sweep()
		switch s.kind {
		case nothing:
			return did
		case again:
			did = "answers from the record that it knows"
		case readRecord:
			g.get(s.requests)
			return "begins to read"
		case lookAtKeys:
			g.look(s.keys, s.requests)
			return "begins to look at keys"
		case prepareKeys:
			g.call = call{kind: keyCall, requests: s.requests}
			return "begins to make a key"
		case sendSwap:
			g.number++
			f := g.core.flight
			if b.flight != nil {
				b.flight(g, f)
				f.value = f.next.encode()
			}
			g.checkFlight(f)
			if b.answerEarly {
				g.answerEarly(f)
			}
			g.attempt(g.session)
			return "sends a swap"
		}
	}
}

// attempt begins an attempt of the swap in flight.
func (g *gatewaySim) attempt(session SessionID) {
	g.call = call{kind: swapCall, session: session}
}

func (g *gatewaySim) settle() string {
	f := g.core.flight
	b := &g.world.sc.broken
	if b.noFence && g.core.needsFence() {
		g.core.fenceDone()
	}
	switch {
	case g.core.needsFence():
		g.call = call{kind: fenceCall}
		return "fences its session"
	case f.expect == 0 && g.core.linear || b.doubtByRead:
		g.get(nil)
		return "reads to settle its swap"
	}
	g.attempt(f.session)
	return "sends the same swap again"
}

func (g *gatewaySim) get(requests []*request) {
	g.call = call{kind: getCall, requests: requests, seen: g.world.store}
}

func (g *gatewaySim) look(keys []uint64, requests []*request) {
	g.call = call{kind: lookCall, requests: requests, keys: keys}
	for _, id := range keys {
		k := g.world.keys[id]
		g.call.gone = append(g.call.gone, k == runOut || k == discarded || g.world.sc.broken.keysLookGone)
	}
}

func (g *gatewaySim) letDiscardsGo() {
	for _, id := range g.core.discards {
		g.world.keys[id] = discarded
	}
	g.core.discards = nil
}

// swapAnswered is the second half of committer.attempt.
func (g *gatewaySim) swapAnswered(res SwapResult, err error) {
	f := g.core.flight
	g.call = call{}
	notApplied, over := errors.Is(err, ErrNotApplied), errors.Is(err, ErrSessionEnded)
	if notApplied && !f.doubt && !over && !errors.Is(err, ErrExpired) {
		g.core.fail(unavailable(err))
	}
	g.core.swapDone(res, err, notApplied)
	g.sweep()
}

// getAnswered is the second half of committer.read.
func (g *gatewaySim) getAnswered(e stored, err error) {
	requests := g.call.requests
	g.call = call{}
	if err != nil {
		g.refuseAll(requests, err)
		return
	}
	if g.world.sc.broken.doubtByRead && g.core.flight != nil && e.revision == g.core.flight.expect {
		g.core.notApplied(false)
		g.core.settled(nil, false)
	} else {
		_, _ = g.core.readDone(e.entry(), requests)
	}
	g.sweep()
}

func (g *gatewaySim) refuseAll(requests []*request, err error) {
	for _, r := range requests {
		if r.phase == pending && !r.flying && r.kind != giveBackRequest {
			g.core.drop(r, answer{err: unavailable(err)})
		}
	}
	g.sweep()
}

// lookAnswered is the second half of committer.lookAtKeys.
func (g *gatewaySim) lookAnswered(err error) {
	c := g.call
	g.call = call{}
	if err != nil {
		g.refuseAll(c.requests, err)
		return
	}
	for i, id := range c.keys {
		if c.gone[i] {
			g.life[id] = expired
		} else {
			g.noteAlive(id)
		}
	}
	for _, r := range c.requests {
		r.looked = append(slices.Clip(r.looked), c.keys...)
	}
}

// noteAlive notes that a key had time left when the call began: that much time
// has not passed as long as the key lives.
func (g *gatewaySim) noteAlive(id uint64) {
	g.life[id] = unknownLife
	if g.world.keys[id] == ticking {
		g.life[id] = alive
	}
}

// keyMade is the rest of committer.prepareKeys for the first request. More
// requests go on in the same call.
func (g *gatewaySim) keyMade(err error) {
	r := g.call.requests[0]
	rest := g.call.requests[1:]
	switch {
	case r.phase == done:
	case err != nil && r.phase == pending:
		g.core.drop(r, answer{err: unavailable(err)})
	case err != nil && r.phase == queued:
		rest = nil
	case err == nil:
		r.key = Expiring{ID: g.world.newKey(), TTL: r.ttl + keySlack}
	}
	for len(rest) > 0 && rest[0].phase == done {
		rest = rest[1:]
	}
	g.call = call{}
	if len(rest) > 0 {
		g.call = call{kind: keyCall, requests: rest}
	}
	g.sweep()
}

// restarted is committer.restartKeys for the first late grant.
func (g *gatewaySim) restarted(err error) {
	i := g.late[0]
	g.late = g.late[1:]
	g.call = call{}
	r := g.requests[i]
	if err == nil {
		g.noteAlive(r.key.ID)
	}
	if err != nil || r.gone {
		undo := giveBackOf(r, r.answer.acquired)
		undo.done = g.doneOf(i)
		g.core.add(undo)
		g.giveBacks[i] = undo
		r.answer = answer{err: unavailable(err)}
		if errors.Is(err, ErrExpired) {
			r.answer.err = errSlotExpired
		}
	}
	g.deliver(i)
}

// answered is the done function of committer.submit.
func (g *gatewaySim) answered(i int) {
	if u := g.giveBacks[i]; u != nil && u.phase == done {
		g.giveBacks[i] = nil
		return
	}
	r := g.requests[i]
	if r.key.ID != 0 && r.answer.acquired.Acquired {
		g.noteAlive(r.key.ID)
		if g.slow || g.world.keys[r.key.ID] != ticking && !g.world.sc.broken.tellLate {
			g.late = append(g.late, i)
			return
		}
	}
	g.deliver(i)
}

// deliver lets the caller have the answer, which await.go returns. What is not
// a grant is written at once: nothing depends on whether it is.
func (g *gatewaySim) deliver(i int) {
	r := g.requests[i]
	g.requests[i] = nil
	c := &g.world.clients[i]
	if c.status != waitsForAnswer {
		return
	}
	a := r.answer
	switch {
	case g.world.sc.broken.adopt && c.byOther && errors.Is(a.err, errPlaceLost):
		c.status = isGranted
	case errors.Is(a.err, lock.ErrOutcomeUnknown):
		c.status = told504
	case a.err != nil:
		c.status = told503
		g.world.checkRefused(i, a.err)
	case r.kind == acquireRequest && a.acquired.Acquired:
		c.status, c.token, c.mark, c.value = isGranted, a.acquired.Token, a.acquired.Mark, a.acquired.Value
		g.world.checkGrant(i, r.key.ID)
	case r.kind == acquireRequest, r.kind == releaseRequest && !a.released:
		c.status = toldFalse
		g.world.checkNegative(i)
	case r.kind == valueRequest:
		c.status = toldTrue
		g.world.checkValue(i, a.value)
	default:
		c.status = toldTrue
		g.world.checkDone(i)
	}
}

// sweep finds the give-backs that the core has made of grants which nobody
// waits for.
func (g *gatewaySim) sweep() {
	for _, r := range g.core.pending {
		if r.kind != giveBackRequest || slices.Contains(g.giveBacks, r) {
			continue
		}
		g.naming = true
		r.done()
		g.naming = false
		g.giveBacks[g.named] = r
		g.requests[g.named] = nil
	}
	for i, r := range g.requests { // dropped, with nobody to tell
		if r != nil && r.phase == done && !slices.Contains(g.late, i) {
			g.requests[i] = nil
		}
	}
}

// giveUp is committer.giveUp: the store was silent for too long.
func (g *gatewaySim) giveUp(i int) {
	r := g.requests[i]
	c := &g.world.clients[i]
	c.status, c.tardy = told503, true
	if r.flying && r.kind != valueRequest || r.phase == done {
		c.status = told504
	}
	switch {
	case r.phase == done:
		r.gone = true
	case r.kind == acquireRequest || r.flying:
		g.core.leave(r, true)
	default:
		g.core.drop(r, answer{})
	}
	g.sweep()
}

// lose is gateways.set(nil): the gateway learns that its session has ended.
func (g *gatewaySim) lose() {
	g.heard = g.heard.with(g.session)
	g.session = 0
	g.core.setSession(0)
	g.sweep()
}

// renew is gateways.set with a new session.
func (g *gatewaySim) renew() {
	g.world.opened++
	g.session = g.world.opened
	g.core.setSession(g.session)
	g.sweep()
}

// answerEarly is what a gateway must not do: tell before the commit.
func (g *gatewaySim) answerEarly(f *flight) {
	for _, o := range f.outcomes {
		i := slices.Index(g.requests, o.request)
		if i >= 0 && o.what == isAnswered && o.answer.acquired.Acquired && o.request.holder == "" {
			c := &g.world.clients[i]
			c.status = toldTrue
			g.world.entered(i)
		}
	}
}
