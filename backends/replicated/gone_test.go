package replicated_test

import (
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
	"github.com/lockgateway/lockgateway/lock"
)

// A record may be forgotten while a swap that expects it is in doubt. What became of
// the swap nobody can know then, but the lock goes on.
func TestForgottenWhileInDoubt(t *testing.T) {
	for name, config := range map[string]hostile.Config{"Strict": strict, "Loose": loose} {
		t.Run(name, func(t *testing.T) {
			script(t, config, 1, func(w *world) {
				w.take(w.gates[0], "")
				w.release(w.gates[0], "", true)
				c, held := w.beginHeld(w.gates[0], w.request("", 0))
				w.cluster.Forget(w.key.Name())
				held.Release(false, false)
				c.failed(lock.ErrOutcomeUnknown)
				time.Sleep(time.Minute)
				w.take(w.gates[0], "")
				w.held(w.gates[0], 1)
			})
		})
	}
}
