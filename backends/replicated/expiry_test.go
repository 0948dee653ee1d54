package replicated_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

func (w *world) withTTL(wait, ttl time.Duration) lock.AcquireRequest {
	req := w.request("a", wait)
	req.TTL = ttl
	return req
}

func TestSlotExpiresForAWaiterElsewhere(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		first := w.begin(w.gates[0], w.withTTL(0, 5*time.Second)).acquired()
		if first.ExpiresIn < 5*time.Second {
			w.Errorf("the slot expires in %v", first.ExpiresIn)
		}
		c := w.begin(w.gates[1], w.request("b", lock.Forever))
		c.waits()
		second := c.acquired()
		if c.took < 5*time.Second || c.took > 10*time.Second {
			w.Errorf("a slot of 5 s was free after %v", c.took)
		}
		if second.Token <= first.Token {
			w.Errorf("the token %d is not greater than %d", second.Token, first.Token)
		}
		w.release(w.gates[0], "a", false)
	})
}

func TestExpiredSlotIsNotHeldByWhoAsks(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		first := w.begin(w.gates[0], w.withTTL(0, time.Second)).acquired()
		time.Sleep(time.Minute)
		w.held(w.gates[1], 0)
		again := w.take(w.gates[0], "a") // B29: a new grant, not a renewal
		if again.Token <= first.Token {
			w.Errorf("a renewal after the expiry gave the token %d again", again.Token)
		}
	})
}

func TestRenewalStartsTheTimeOver(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		first := w.begin(w.gates[0], w.withTTL(0, 5*time.Second)).acquired()
		c := w.begin(w.gates[1], w.request("b", lock.Forever))
		for range 5 {
			time.Sleep(4 * time.Second)
			if res := w.begin(w.gates[1], w.withTTL(0, 5*time.Second)).acquired(); res.Token != first.Token {
				w.Errorf("a renewal gave another token")
			}
		}
		c.waits()
		if res := w.take(w.gates[0], "a"); res.ExpiresIn <= 0 || res.ExpiresIn > 7*time.Second {
			w.Errorf("a repeat without a TTL gave %+v", res)
		}
		c.acquired()
		if n := w.cluster.Counts().Expiring; n != 0 {
			w.Errorf("%d expiring keys are left", n)
		}
	})
}

// B30: the time starts with the grant, not with the request.
func TestB30TimeStartsWithTheGrant(t *testing.T) {
	script(t, strict, 1, func(w *world) {
		w.take(w.gates[0], "b")
		c := w.begin(w.gates[0], w.withTTL(lock.Forever, 5*time.Second))
		time.Sleep(30 * time.Second)
		w.release(w.gates[0], "b", true)
		c.acquired()
		time.Sleep(4 * time.Second)
		w.held(w.gates[0], 1)
	})
}

func TestLateGrantGetsItsFullTime(t *testing.T) {
	script(t, strict, 2, func(w *world) {
		w.take(w.gates[0], "")
		w.release(w.gates[0], "", true)
		c, h := w.beginHeld(w.gates[0], w.withTTL(time.Hour, 4*time.Second))
		time.Sleep(900 * time.Millisecond)
		h.Release(true, true)
		synctest.Wait()
		c.acquired()
		time.Sleep(4*time.Second - time.Millisecond)
		w.held(w.gates[1], 1)
		time.Sleep(time.Minute)
		w.held(w.gates[1], 0)
	})
}

func TestGrantThatRanOutIsTakenOffAgain(t *testing.T) {
	script(t, loose, 2, func(w *world) {
		w.take(w.gates[0], "")
		w.release(w.gates[0], "", true)
		c, h := w.beginHeld(w.gates[0], w.withTTL(time.Hour, time.Second))
		h.Lose()
		w.cluster.Cut(w.stores[0])
		time.Sleep(10 * time.Second)
		h.Release(true, false)
		w.cluster.Heal(w.stores[0])
		time.Sleep(time.Minute)
		<-c.done
		if c.err == nil {
			w.Errorf("acquire gave %+v; want an error", c.res)
		}
		w.held(w.gates[1], 0)
	})
}
