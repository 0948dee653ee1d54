package main

import (
	"context"
	"fmt"
	"time"
)

// crowd is many clients that wait for an answer at the same time, in the order
// in which they came.
type crowd struct {
	waiting []*client
	control *client // a connection besides, for all other requests
}

// connectionsPerSource is how many connections are opened from one address. It
// has some 28,000 ports, but the fewer of them are free the longer the system
// looks for one.
const connectionsPerSource = 2_000

// gather opens n connections and sends one request on each. Each is known to
// wait before the next comes: count is asked how many wait until it says so.
func gather(ctx context.Context, address string, n int, request []byte, count func(*client) (int, error)) (*crowd, error) {
	control, err := dial(address)
	if err != nil {
		return nil, err
	}
	g := &crowd{control: control}
	for i := range n {
		source := fmt.Sprintf("127.0.0.%d", 2+i/connectionsPerSource)
		c, err := dialFrom(source, address)
		if err == nil {
			g.waiting = append(g.waiting, c)
			err = c.send(request)
		}
		if err == nil {
			err = g.until(ctx, i+1, count)
		}
		if err != nil {
			g.close()
			return nil, fmt.Errorf("waiter %d: %w", i, err)
		}
	}
	return g, nil
}

// until returns when so many wait.
func (g *crowd) until(ctx context.Context, want int, count func(*client) (int, error)) error {
	deadline := time.Now().Add(answerTimeout)
	for {
		got, err := count(g.control)
		if err != nil || got == want {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d requests wait, not %d", got, want)
		}
	}
}

// leave closes the connections of all who wait.
func (g *crowd) leave() {
	for _, c := range g.waiting {
		c.close()
	}
	g.waiting = nil
}

func (g *crowd) close() {
	g.leave()
	g.control.close()
}
