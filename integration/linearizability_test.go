package integration_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
)

// What clients are told through several gateways, while servers and gateways
// fail, is what one semaphore would have told them, one after the other.
func testLinearizableUnderFaults(t *testing.T, start starter) {
	c := start(t, 3)
	line := relay.New(t, c.members()[0].Address())
	gateways := append(startGateways(t, 2, quick, c), startGateway(t, "behind-relay", quick, c, line.Address()))
	var leader member
	faults := []struct{ fail, mend func() }{
		{func() { leader = c.leader(t); leader.Kill(t) }, func() { leader.Restart(t) }},
		{func() { gateways[0].Kill(t) }, func() { gateways[0].Restart(t) }},
		{func() { leader = c.leader(t); leader.Pause(t) }, func() { leader.Resume(t) }},
		{line.Cut, line.Heal},
		{func() { gateways[1].Pause(t) }, func() { gateways[1].Resume(t) }},
		{func() { line.Stall(relay.Answers) }, func() { line.Cut(); line.Heal() }},
		{func() { c.moveLeader(t) }, func() { c.compact(t) }},
		{func() { line.LoseAnswers(5) }, func() { line.LoseAnswers(0) }},
	}

	h := &history{begun: time.Now(), gateways: gateways, locks: map[string][]porcupine.Operation{}}
	h.start(t, 6)
	h.awaitRound(t)
	for _, f := range faults {
		f.fail()
		h.awaitRound(t)
		f.mend()
		h.awaitRound(t)
	}
	h.stop()
	h.check(t)
}

const (
	historySlots  = 2
	historyLength = 40 // requests to a lock, about
	historyDoubts = 4  // requests to a lock without an outcome, about
)

// history is what clients asked and were told. They go from lock to lock, so
// that no lock's history gets long.
type history struct {
	begun    time.Time
	gateways []*gatewaytest.Gateway
	stop     func()

	mu     sync.Mutex
	round  int // which lock it is now
	sent   int // requests in this round
	doubts int // those without an outcome
	locks  map[string][]porcupine.Operation
	bad    []string // answers that no request may get
}

// start starts clients, which end with stop.
func (h *history) start(t *testing.T, clients int) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	h.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(h.stop)
	for range clients {
		running.Go(func() { // ends when the context is done
			for ctx.Err() == nil {
				if served := h.send(ctx); !served {
					pause(ctx, 50*time.Millisecond)
				}
			}
		})
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// send sends one request and records it. It reports whether it was carried out.
func (h *history) send(ctx context.Context) bool {
	lock := h.lock()
	do := doAcquire
	switch n := rand.IntN(20); {
	case n < 1:
		do = doReset
	case n < 5:
		do = doValue
	case n < 12:
		do = doRelease
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	call := time.Since(h.begun)
	query := ""
	if do == doValue {
		query = "detail=1"
	}
	a := h.gateways[rand.IntN(len(h.gateways))].Get(ctx, lock, string(do), query)
	h.record(lock, do, a, call, time.Since(h.begun))
	return a.OK()
}

// lock returns the lock whose turn it is.
func (h *history) lock() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sent++; h.sent > historyLength || h.doubts > historyDoubts {
		h.round++
		h.sent, h.doubts = 1, 0
	}
	return fmt.Sprintf("%d/round-%d", historySlots, h.round)
}

// record adds a request to its lock's history.
func (h *history) record(lock string, do step, a gatewaytest.Answer, call, end time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	add := func(do step, end int64) {
		h.locks[lock] = append(h.locks[lock], porcupine.Operation{Input: do, Output: a, Call: int64(call), Return: end})
	}
	switch {
	case a.OK():
		add(do, int64(end))
		return
	case !a.Refused() && !a.Unknown():
		h.bad = append(h.bad, fmt.Sprintf("%s of %s: %v", do, lock, a))
		return
	}
	// A refused acquire may have taken a slot for a while, of which nobody was
	// told; other refused requests did nothing.
	switch {
	case do == doAcquire:
		add(mayAcquire, math.MaxInt64)
		add(mayGiveBack, math.MaxInt64)
	case do == doRelease && a.Unknown():
		add(mayRelease, math.MaxInt64)
	case do == doReset && a.Unknown():
		add(mayReset, math.MaxInt64)
	default:
		return
	}
	h.doubts++
}

// awaitRound waits until clients have gone through another lock.
func (h *history) awaitRound(t *testing.T) {
	t.Helper()
	now := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.round
	}
	before := now()
	process.Await(t, "clients are told something", func() bool { return now() > before })
}

// check checks every lock's history.
func (h *history) check(t *testing.T) {
	t.Helper()
	for _, b := range h.bad {
		t.Error(b)
	}
	model, requests, undecided := semaphoreModel(historySlots), 0, 0
	for lock, operations := range h.locks {
		requests += len(operations)
		switch porcupine.CheckOperationsTimeout(model, operations, 20*time.Second) {
		case porcupine.Ok:
		case porcupine.Illegal:
			var all strings.Builder
			for _, op := range operations {
				fmt.Fprintf(&all, "%12d %20d  %-14s %v\n", op.Call, op.Return, op.Input, op.Output)
			}
			t.Errorf("the history of %s is not that of a semaphore:\n%s", lock, &all)
		case porcupine.Unknown:
			undecided++
		}
	}
	t.Logf("%d operations on %d locks, of which %d have too many ways to go through", requests, len(h.locks), undecided)
	if undecided > len(h.locks)/10 {
		t.Error("these are too many")
	}
}
