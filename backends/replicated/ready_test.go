package replicated_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// A gateway that is not ready is sent no requests, so it must find out by itself that
// it is ready again.
func TestReadyAgainWithoutRequests(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		g := w.gates[0]
		expect := func(when string, want error) {
			t.Helper()
			if err := g.Ready(); !errors.Is(err, want) {
				t.Errorf("%s it is ready: %v; want %v", when, err, want)
			}
		}
		expect("at first", nil)
		w.cluster.Cut(w.stores[0])
		w.begin(g, w.request("", 0)).failed(lock.ErrOutcomeUnknown)
		expect("while the store is silent", lock.ErrUnavailable)
		time.Sleep(2 * w.stores[0].SessionTTL()) // its session ends as well
		w.cluster.Heal(w.stores[0])
		time.Sleep(time.Minute)
		expect("once the store answers", nil)
		if n := w.cluster.Counts().Expiring; n != 0 {
			t.Errorf("it left %d expiring keys in the store", n)
		}
		g.Drain()
		expect("while it drains", lock.ErrClosing)
	})
}
