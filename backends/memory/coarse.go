package memory

import (
	"sync/atomic"
	"time"
)

// coarse is a clock for what people are shown. Reading the real one would be the
// dearest part of taking a free slot, so what it said is good for a while: coarse
// is late by that much, and nothing but a look at a lock may depend on it.
type coarse struct {
	real func() instant
	last atomic.Int64 // an instant; 0: it is too old, or there was none
	ages *time.Timer  // empties last
}

const coarseness = 100 * time.Millisecond

func (c *coarse) init(real func() instant) {
	c.real = real
	c.ages = time.AfterFunc(coarseness, func() { c.last.Store(0) })
}

func (c *coarse) now() instant {
	if last := c.last.Load(); last != 0 {
		return instant(last)
	}
	return c.read()
}

func (c *coarse) read() instant {
	now := c.real()
	if c.last.CompareAndSwap(0, int64(now)) {
		c.ages.Reset(coarseness)
	}
	return now
}

// stop is called when nobody calls now any more.
func (c *coarse) stop() { c.ages.Stop() }
