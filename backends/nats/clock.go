package nats

import (
	"sync"
	"time"
)

const (
	// clockSkew is how far apart the servers' clocks are at most. A message
	// expires by the clock of each server on its own, and was dated by another.
	clockSkew = time.Second

	// markerTTL is how long what stands for something removed stays. Nothing
	// depends on how long that is.
	markerTTL = 5 * time.Second
)

// clock tells the servers' time, since messages are dated with it and gateways may
// have another. It goes on by this process's monotonic clock from when a server
// told its time, and is late by no more than the servers differ: it is set to when
// the server was asked.
type clock struct {
	mu     sync.Mutex // guards what follows
	server time.Time
	asked  time.Time
}

// set notes what a server said that was asked at some moment.
func (c *clock) set(server, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.asked = server, asked
}

// now returns the servers' time, or our own as long as no server told any.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() {
		return time.Now()
	}
	return c.server.Add(time.Since(c.asked))
}

// seconds rounds a time up to what servers can do, which is whole seconds and at
// least one: they cut off fractions.
func seconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}
