package replicated_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// Events may be lost without a sign, so records that somebody waits for are read
// again: soon where they are few, and not too many a second where they are many.
func TestRereadsOfManyRecordsAreSpread(t *testing.T) {
	const period = 20 * time.Second
	for _, test := range []struct {
		locks       int
		least, most int // reads of each in the period
	}{{20, 10, 21}, {4000, 4, 11}} {
		script(t, strict, 2, func(w *world) {
			var waiters []*call
			for i := range test.locks {
				w.key = stormKey(t, fmt.Sprintf("1/x%d", i))
				w.take(w.gates[0], "")
				waiters = append(waiters, w.start(w.gates[1], w.request("", lock.Forever)))
			}
			time.Sleep(period / 2) // the first were planned when few were waited for
			before := w.cluster.Counts().Gets
			time.Sleep(period)
			reads := (w.cluster.Counts().Gets - before) / test.locks
			if reads < test.least || reads > test.most {
				t.Errorf("each of %d records was read %d times in %v; want %d to %d", test.locks, reads, period, test.least, test.most)
			}
			w.gates[1].Drain()
			for _, waiter := range waiters {
				waiter.failed(lock.ErrClosing)
			}
		})
	}
}
