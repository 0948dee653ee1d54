package main

import (
	"context"
	"fmt"
	"time"
)

// crowd is many clients that wait for an answer at the same time, in the order
// in which they came.
type crowd struct {
	waiting []waiting
	control *client // a connection besides, for all other requests
}

// connectionsPerSource is how many connections are opened from one address. It
// has some 28,000 ports, but the fewer of them are free the longer the system
// looks for one.
const connectionsPerSource = 2_000

// waiting is a request that was sent.
type waiting interface {
	// await returns the body of its answer.
	await() ([]byte, error)

	// close ends it, as a client does that goes away.
	close()
}

// sender sends the i-th request for a path of a server.
type sender func(ctx context.Context, address, path string, i int) (waiting, error)

// connections sends each request on a connection of its own.
func connections(_ context.Context, address, path string, i int) (waiting, error) {
	c, err := dialFrom(fmt.Sprintf("127.0.0.%d", 2+i/connectionsPerSource), address)
	if err != nil {
		return nil, err
	}
	return c, c.send(requestFor(address, path))
}

func (c *client) await() ([]byte, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	return c.receive()
}

// gather sends n requests for a path. Each is known to wait before the next
// comes: count is asked how many wait until it says so.
func gather(ctx context.Context, send sender, address, path string, n int, count func(*client) (int, error)) (*crowd, error) {
	control, err := dial(address)
	if err != nil {
		return nil, err
	}
	g := &crowd{control: control}
	for i := range n {
		w, err := send(ctx, address, path, i)
		if err == nil {
			g.waiting = append(g.waiting, w)
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

// leave ends all that wait.
func (g *crowd) leave() {
	for _, w := range g.waiting {
		w.close()
	}
	g.waiting = nil
}

func (g *crowd) close() {
	g.leave()
	g.control.close()
}
