package observer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// worker is a client that acquires, holds and releases, again and again.
type worker struct {
	*Observer

	ctx context.Context //nolint:containedctx // It is the worker's life.
}

func (w *worker) run() {
	for !w.stopped() {
		if w.named {
			w.holdByName()
		} else {
			w.hold()
		}
	}
}

// holdByName is one round of a named holder. Its name is new, so that an old
// request that is still on its way somewhere cannot touch another round.
func (w *worker) holdByName() {
	name, floor := w.newName()
	outcome := w.acquireByName(name, floor)
	if outcome.granted {
		w.pause()
		w.note(func() { w.holders-- })
		w.releaseByName(name)
	}
	// From here on nobody believes that the name holds.
	if outcome.unknown {
		w.note(func() { w.loose[name] = true })
	}
	if !outcome.granted {
		w.releaseSomeLoose()
	}
}

// outcome is what a worker knows after its attempts to acquire.
type outcome struct {
	granted bool
	unknown bool // an attempt may have taken effect, or may yet
}

// acquireByName repeats an acquire until it is known what came of it.
func (w *worker) acquireByName(name string, floor uint64) (o outcome) {
	for !w.stopped() {
		a := w.acquire(gatewaytest.Named(name))
		switch {
		case a.OK():
			if a.Acquired {
				w.granted(name, floor, a)
			}
			o.granted = a.Acquired
			return o
		case a.Unknown():
			o.unknown = true
		case !a.Refused():
			w.violation("an acquire was answered %v", a)
			return o
		}
		w.pause()
	}
	return o
}

// releaseByName repeats a release until it is known that it happened.
func (w *worker) releaseByName(name string) {
	for unknown := false; w.ctx.Err() == nil; w.pause() {
		a := w.release(gatewaytest.Named(name))
		switch {
		case a.OK():
			if !a.Released && !unknown {
				w.violation("%s had lost its slot when it came to release it", name)
			}
			return
		case a.Unknown():
			unknown = true
		case !a.Refused():
			w.violation("a release was answered %v", a)
			return
		}
	}
}

// hold is one round of an anonymous holder. It cannot repeat a request whose
// outcome is unknown.
func (w *worker) hold() {
	a := w.acquire("")
	switch {
	case a.Unknown():
		w.note(func() { w.unknown++ })
	case a.OK() && a.Acquired:
		w.granted("", 0, a)
		w.pause()
		w.note(func() { w.holders-- })
		w.releaseAnonymous()
		return
	case !a.OK() && !a.Refused():
		w.violation("an acquire was answered %v", a)
	}
	w.pause()
}

func (w *worker) releaseAnonymous() {
	for ; w.ctx.Err() == nil; w.pause() {
		a := w.release("")
		switch {
		case a.OK():
			if !a.Released {
				w.violation("a holder had lost its slot when it came to release it")
			}
			return
		case a.Unknown():
			w.note(func() { w.unknown++ })
			return
		case !a.Refused():
			w.violation("a release was answered %v", a)
			return
		}
	}
}

// acquire sends an acquire that waits for a while.
func (w *worker) acquire(query string) gatewaytest.Answer {
	const wait = 2 * time.Second
	return w.send(w.ctx, "acquire", gatewaytest.Wait(wait, query), wait)
}

func (w *worker) release(query string) gatewaytest.Answer {
	return w.send(w.ctx, "release", query, 0)
}

// releaseSomeLoose releases a name with an unknown outcome, which may be what
// nobody else can get past.
func (w *worker) releaseSomeLoose() {
	w.mu.Lock()
	var names []string
	for name := range w.loose {
		names = append(names, name)
	}
	w.mu.Unlock()
	if len(names) > 0 {
		w.releaseIfLoose(w.ctx, names[rand.IntN(len(names))]) //nolint:gosec // Not a secret.
	}
}

// granted notes a grant when its answer arrives, and checks it.
func (w *worker) granted(name string, floor uint64, a gatewaytest.Answer) {
	w.note(func() {
		w.grants++
		w.holders++
		if w.holders > w.slots {
			w.violate("%d clients hold %d slots", w.holders, w.slots)
		}
		if a.Held() < 1 || a.Held() > w.slots {
			w.violate("a grant says that there are %d holders", a.Held())
		}
		if name == "" {
			return
		}
		if w.slots == 1 {
			floor = w.highest // grants are heard of in their order
		}
		if a.Token <= floor {
			w.violate("%s got token %d after %d", name, a.Token, floor)
		}
		if other, ok := w.tokens[a.Token]; ok {
			w.violate("%s and %s both got token %d", other, name, a.Token)
		}
		w.tokens[a.Token] = name
		w.highest = max(w.highest, a.Token)
	})
}

// newName returns a name that nobody had, and a token below that of any grant
// that it may get.
func (w *worker) newName() (name string, floor uint64) {
	w.note(func() {
		w.names++
		name, floor = fmt.Sprintf("holder-%d", w.names), w.highest
	})
	return name, floor
}

func (w *worker) stopped() bool {
	select {
	case <-w.stop:
		return true
	case <-w.ctx.Done():
		return true
	default:
		return false
	}
}

// pause is what a client does with a slot, or before it tries again.
func (w *worker) pause() {
	timer := time.NewTimer(rand.N(10 * time.Millisecond)) //nolint:gosec // Not a secret.
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
}

func (o *Observer) note(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

func (o *Observer) violation(format string, args ...any) {
	o.note(func() { o.violate(format, args...) })
}

// violate records that a promise was broken. The caller holds the mutex.
func (o *Observer) violate(format string, args ...any) {
	o.violations = append(o.violations, fmt.Sprintf(format, args...))
}
