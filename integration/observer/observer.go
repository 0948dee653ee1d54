// Package observer puts a lock under load and watches, as its clients see it,
// whether it keeps its promises: never more holders than slots, tokens that
// grow, nothing lost and nothing invented. It goes by answers alone. Where
// there is none, or one that says unknown, it takes what is worse.
package observer

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
)

// Observer is the load on a lock and the record of what came of it.
type Observer struct {
	lock     string
	slots    int64
	gateways []*gatewaytest.Client
	named    bool

	stop    chan struct{} // closed when workers are to begin nothing more
	workers sync.WaitGroup

	mu         sync.Mutex
	avoided    map[*gatewaytest.Client]time.Time // until when
	holders    int64                             // who believe that they hold
	grants     int64                             // all that were answered
	through    map[*gatewaytest.Client]int64     // those of each gateway
	highest    uint64                            // the greatest token that was answered
	tokens     map[uint64]string                 // whose each was
	names      int                               // given out
	loose      map[string]bool                   // names that may hold though nobody believes it
	unknown    int64                             // anonymous slots of which the same is true
	violations []string
}

// Named makes an observer of the lock max/id, whose workers are named holders
// and go through all gateways, at random.
func Named(id string, slots int64, gateways ...*gatewaytest.Client) *Observer {
	return &Observer{
		lock:     fmt.Sprintf("%d/%s", slots, id),
		slots:    slots,
		gateways: gateways,
		named:    true,
		stop:     make(chan struct{}),
		tokens:   make(map[uint64]string),
		loose:    make(map[string]bool),
		through:  make(map[*gatewaytest.Client]int64),
		avoided:  make(map[*gatewaytest.Client]time.Time),
	}
}

// Anonymous is Named with workers that take anonymous slots. A slot that was
// taken or released with an unknown outcome may stay held for ever.
func Anonymous(id string, slots int64, gateways ...*gatewaytest.Client) *Observer {
	o := Named(id, slots, gateways...)
	o.named = false
	return o
}

// Start starts workers. They end with Stop, which the test has to call, or at
// the test's end.
func (o *Observer) Start(t testing.TB, workers int) {
	ctx, cancel := context.WithCancel(context.Background())
	for range workers {
		w := &worker{Observer: o, ctx: ctx}
		o.workers.Go(w.run) // ends when stop is closed or the context done
	}
	t.Cleanup(func() {
		cancel()
		o.workers.Wait()
	})
}

// AwaitGrants waits for n more grants.
func (o *Observer) AwaitGrants(t testing.TB, n int64) {
	t.Helper()
	o.await(t, n, "", func() int64 { return o.grants })
}

// AwaitGrantsThrough waits for n more grants by one of the gateways.
func (o *Observer) AwaitGrantsThrough(t testing.TB, gateway *gatewaytest.Client, n int64) {
	t.Helper()
	o.await(t, n, " through one gateway", func() int64 { return o.through[gateway] })
}

// await waits until a count is n more than now.
func (o *Observer) await(t testing.TB, n int64, which string, count func() int64) {
	t.Helper()
	locked := func() int64 {
		o.mu.Lock()
		defer o.mu.Unlock()
		return count()
	}
	before := locked()
	process.Await(t, fmt.Sprintf("%d more grants of %s%s", n, o.lock, which), func() bool {
		return locked() >= before+n
	})
}

// Stop ends the load and reports what went wrong: during it, and in what it
// left behind. All gateways must serve.
func (o *Observer) Stop(t testing.TB) {
	t.Helper()
	close(o.stop)
	o.workers.Wait()
	if o.named {
		o.expectEmpty(t)
	} else {
		o.expectAtMostUnknown(t)
	}
	o.expectAllSlots(t)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range o.violations {
		t.Errorf("%s: %s", o.lock, v)
	}
	t.Logf("%s: %d grants, %d with an unknown outcome", o.lock, o.grants, o.unknown+int64(len(o.loose)))
}

// expectEmpty waits until nobody holds and nobody waits. Names with an unknown
// outcome are released, as often as they turn up.
func (o *Observer) expectEmpty(t testing.TB) {
	t.Helper()
	o.gateways[0].Await(t, o.lock, "nobody left", func(a gatewaytest.Answer) bool {
		for _, h := range a.Holders {
			o.releaseIfLoose(t.Context(), h.Holder)
		}
		return a.Held() == 0 && a.Waiting == 0
	})
}

// expectAtMostUnknown waits until nobody waits, and no more slots are held than
// had an unknown outcome.
func (o *Observer) expectAtMostUnknown(t testing.TB) {
	t.Helper()
	o.gateways[0].Await(t, o.lock, "nobody left but the unknown", func(a gatewaytest.Answer) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return a.Held() <= o.unknown && a.Waiting == 0
	})
}

// expectAllSlots checks through every gateway in turn that just so many slots
// can be taken as there are. Right after a fault, or in a slow minute, a gateway may
// refuse or not know; each request may be repeated.
func (o *Observer) expectAllSlots(t testing.TB) {
	t.Helper()
	o.reset(t)
	for i := range o.slots {
		name := fmt.Sprintf("last-%d", i)
		if !o.acquires(t, o.gateways[int(i)%len(o.gateways)], name) {
			t.Fatalf("%s: no slot is left for %s; there are %d", o.lock, name, o.slots)
		}
	}
	for _, g := range o.gateways {
		if o.acquires(t, g, "one-too-many") {
			t.Fatalf("%s: more slots were granted than there are", o.lock)
		}
		g.AwaitState(t, o.lock, o.slots, 0)
	}
	o.reset(t)
}

// acquires reports whether a name gets a slot, once the gateway knows.
func (o *Observer) acquires(t testing.TB, g *gatewaytest.Client, name string) bool {
	t.Helper()
	var a gatewaytest.Answer
	process.Await(t, "an acquire is answered", func() bool {
		a = g.Acquire(t.Context(), o.lock, gatewaytest.Named(name))
		return a.OK()
	})
	return a.Acquired
}

func (o *Observer) reset(t testing.TB) {
	t.Helper()
	process.Await(t, "a reset is answered", func() bool { return o.gateways[0].Reset(t.Context(), o.lock).OK() })
}

// releaseIfLoose releases a name with an unknown outcome. Its name is not used
// again, so that this takes nothing from anybody.
func (o *Observer) releaseIfLoose(ctx context.Context, name string) {
	o.mu.Lock()
	is := o.loose[name]
	o.mu.Unlock()
	if is {
		o.send(ctx, "release", gatewaytest.Named(name), 0)
	}
}
