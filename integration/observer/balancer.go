package observer

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

const (
	// patience is how long a client waits for an answer that should be there at
	// once, before it hangs up. Gateways answer sooner by themselves, unless they
	// are frozen.
	patience = 5 * time.Second

	// avoidance is how long clients leave a gateway alone that did not answer,
	// or answered that it does not serve.
	avoidance = 3 * time.Second
)

// send sends a request through some gateway, as a load balancer does it that
// avoids those that fail for a while. Wait is how long it may queue.
func (o *Observer) send(ctx context.Context, action, query string, wait time.Duration) gatewaytest.Answer {
	ctx, cancel := context.WithTimeout(ctx, wait+patience)
	defer cancel()
	g := o.pick()
	a := g.Get(ctx, o.lock, action, query)
	o.note(func() {
		if !a.OK() {
			o.avoided[g] = time.Now().Add(avoidance)
		} else if a.Acquired {
			o.through[g]++
		}
	})
	return a
}

// pick picks a gateway at random, and rather one that serves.
func (o *Observer) pick() *gatewaytest.Client {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	order := rand.Perm(len(o.gateways)) //nolint:gosec // Not a secret.
	for _, i := range order {
		if g := o.gateways[i]; now.After(o.avoided[g]) {
			return g
		}
	}
	return o.gateways[order[0]]
}
