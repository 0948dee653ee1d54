package locktest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// Inspected is a backend that can be looked into.
type Inspected interface {
	lock.Backend
	lock.Inspector
}

// RunInspector checks what a backend shows of its locks, as Run checks what it does
// with them. The backend that open returns is that of one gateway.
func RunInspector(t *testing.T, open func(t *testing.T) Inspected) {
	for _, p := range inspectPromises {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.check(t, func() lock.Backend { return open(t) }, 3*time.Minute)
		})
	}
}

// Times that are shown may be coarse, and clocks of gateways differ.
const (
	clocksDiffer = 10 * time.Second
	coarse       = 100 * time.Millisecond // less than what later waits
)

var inspectPromises = []promise{
	{"LocksListsWhatIsHeldOrAwaited", "Locks yields the locks that are held or waited for, and with idle set the others, each with its state", func(s *subject) {
		begun := time.Now()
		held, awaited, idle, fresh := s.key("3"), s.key("1"), s.key("1"), s.key("1")
		s.take(anonymous(held), 1)
		s.take(named(held, "a"), 2)
		s.take(anonymous(awaited), 1)
		s.queue(anonymous(awaited), 1)
		s.queue(named(awaited, "b"), 2)
		s.take(anonymous(idle), 1)
		s.release(idle, "", true)
		s.detail(fresh)
		want := map[lock.Key][2]int64{held: {2, 0}, awaited: {1, 2}}
		s.lists(false, want, held, awaited, idle, fresh)
		want[idle] = [2]int64{0, 0}
		s.lists(true, want, held, awaited, idle, fresh)
		for k, state := range s.locks(true) {
			if _, ours := want[k]; ours {
				s.dated("HeldSince", state.HeldSince, state.Held > 0, begun)
				s.dated("WaitingSince", state.WaitingSince, state.Waiting > 0, begun)
			}
		}
	}},
	{"LocksEndsWithItsContext", "Locks yields an error once its context is done, and nothing after it; it ends when its consumer does", func(s *subject) {
		for range 300 {
			s.take(anonymous(s.key("1")), 1)
		}
		for _, err := range s.inspector().Locks(s.ctx, false) {
			if err != nil {
				s.broken("Locks failed: %v", err)
			}
			break
		}
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		var last error
		for _, err := range s.inspector().Locks(ctx, false) {
			if last != nil {
				s.broken("Locks went on after the error %v", last)
			}
			last = err
		}
		if !errors.Is(last, context.Canceled) {
			s.broken("Locks ended with the error %v; want that of the context", last)
		}
	}},
	{"InspectTellsHoldersAndQueue", "Inspect shows the anonymous slots, the holders with their tokens and the time they have left, and the queue in its order", func(s *subject) {
		begun := time.Now()
		k := s.key("4")
		if d := s.inspect(k); !d.Fresh || d.Held+d.Waiting+d.Anonymous != 0 || d.Holders != nil || d.Queue != nil || d.Key != k {
			s.broken("Inspect gave %+v; want a lock never acquired", d)
		}
		s.take(anonymous(k), 1)
		a := s.take(withTTL(named(k, "a"), time.Hour), 2)
		s.take(anonymous(k), 3)
		b := s.take(named(k, "b"), 4)
		s.queue(anonymous(k), 1)
		s.queue(anonymous(k), 2)
		s.queue(named(k, "c"), 3)
		s.queue(anonymous(k), 4)
		var d lock.Detail
		s.eventually("Inspect shows the queue", func() bool {
			d = s.inspect(k)
			return d.Waiting == 4
		})
		if d.Fresh || d.Key != k || d.Held != 4 || d.Anonymous != 2 || len(d.Holders) != 2 {
			s.broken("Inspect gave %+v; want 4 held, 2 of them by name", d)
		}
		for i, want := range []lock.Holder{{Name: "a", Token: a.Token}, {Name: "b", Token: b.Token}} {
			h := d.Holders[i]
			if h.Name != want.Name || h.Token != want.Token || (h.ExpiresIn > 0) != (h.Name == "a") || h.ExpiresIn > 2*time.Hour {
				s.broken("holder %d is %+v; want %s with token %d, and an hour left if it is a", i, h, want.Name, want.Token)
			}
			s.dated("Since of a holder", h.Since, true, begun)
		}
		type entry struct {
			count int64
			named bool
		}
		var queue []entry
		for _, q := range d.Queue {
			queue = append(queue, entry{q.Count, q.Named})
			s.dated("Since of a place", q.Since, true, begun)
		}
		if want := []entry{{2, false}, {1, true}, {1, false}}; !slices.Equal(queue, want) {
			s.broken("the queue is %v; want %v", queue, want)
		}
		s.reset(k)
		s.eventually("Inspect shows the reset", func() bool { return s.inspect(k).Fresh })
	}},
	{"HeadsAreDatedAnew", "WaitingSince is that of the head of the queue, whoever was it before; HeldSince that of the slots that are held", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		first := s.queue(anonymous(k), 1)
		s.later()
		second := s.queue(anonymous(k), 2)
		before := s.inspect(k)
		first.cancel()
		s.eventually("the second is dated", func() bool {
			d := s.inspect(k)
			return d.Waiting == 1 && d.WaitingSince.After(before.WaitingSince) && d.Queue[0].Since.Equal(d.WaitingSince)
		})
		s.later()
		third := s.queue(anonymous(k), 2)
		before = s.inspect(k)
		s.release(k, "", true)
		second.granted(1)
		s.eventually("the third is dated, and the slot anew", func() bool {
			d := s.inspect(k)
			return d.Waiting == 1 && d.WaitingSince.After(before.WaitingSince) && d.HeldSince.After(before.HeldSince)
		})
		third.waiting()
	}},
	{"SummaryCountsTheAwaited", "Summary counts waiters, and the slots of the locks that they wait for, and says for how long", func(s *subject) {
		k, other := s.key("2"), s.key("1")
		s.take(anonymous(k), 1)
		s.take(named(k, "a"), 2)
		s.take(anonymous(other), 1)
		s.queue(anonymous(k), 1)
		b := s.queue(named(k, "b"), 2)
		s.queue(anonymous(other), 1)
		s.eventually("what is held and awaited counts", func() bool {
			sum := s.inspector().Summary()
			return sum.Held == 3 && sum.Waiting == 3 && sum.OldestHold > 0 && sum.OldestWait > 0
		})
		if sum := s.inspector().Summary(); sum.OldestHold > s.patience || sum.OldestWait > s.patience {
			s.broken("Summary gave %+v; the test is younger", sum)
		}
		b.cancel()
		s.reset(other)
		s.eventually("who left does not count", func() bool {
			sum := s.inspector().Summary()
			return sum.Held == 2 && sum.Waiting == 1
		})
		s.reset(k)
		s.eventually("nothing is left", func() bool { return s.inspector().Summary() == lock.Summary{} })
	}},
	{"HoldsAreOfSlots", "OldestHold is for how long a slot is held, however long the lock was never quite free; slots without a name count only where there is one", func(s *subject) {
		k, other := s.key("2"), s.key("2")
		begun := time.Now()
		s.take(named(k, "a"), 1)
		s.take(named(k, "b"), 2)
		c := s.queue(named(k, "c"), 1)
		s.later()
		s.release(k, "a", true)
		c.granted(2)
		d := s.queue(named(k, "d"), 1)
		s.release(k, "b", true)
		d.granted(2)
		s.queue(named(k, "e"), 1)
		s.eventually("the slots of those who left do not count", func() bool {
			held := s.inspector().Summary().OldestHold
			return held > 0 && held < time.Since(begun)-coarse
		})
		s.reset(k)
		s.take(anonymous(other), 1)
		s.take(anonymous(other), 2)
		s.queue(anonymous(other), 1)
		s.eventually("which of several slots without a name is the oldest is not known", func() bool {
			sum := s.inspector().Summary()
			return sum.Held == 2 && sum.Waiting == 1 && sum.OldestHold == 0
		})
	}},
	{"GatewaysKnowThemselves", "Gateways lists those that share the locks, one of which is this one, or none", func(s *subject) {
		s.eventually("this gateway is one of them, or there are none", func() bool {
			list, err := s.inspector().Gateways(s.ctx)
			if err != nil {
				s.broken("Gateways failed: %v", err)
			}
			ids, self := make(map[string]bool), 0
			for _, g := range list {
				if g.ID == "" || ids[g.ID] {
					s.broken("a gateway has the ID %q", g.ID)
				}
				ids[g.ID] = true
				if g.Self {
					self++
				}
			}
			if self > 1 {
				s.broken("%d of the gateways are this one", self)
			}
			return len(list) == 0 || self == 1
		})
	}},
}

func (s *subject) inspector() lock.Inspector { return s.Backend.(lock.Inspector) }

func (s *subject) inspect(k lock.Key) lock.Detail {
	s.Helper()
	d, err := s.inspector().Inspect(s.ctx, k)
	if err != nil {
		s.broken("Inspect failed: %v", err)
	}
	return d
}

// locks returns what Locks yields, the latest state of each.
func (s *subject) locks(idle bool) map[lock.Key]lock.State {
	s.Helper()
	found := make(map[lock.Key]lock.State)
	for state, err := range s.inspector().Locks(s.ctx, idle) {
		if err != nil {
			s.broken("Locks failed: %v", err)
		}
		found[state.Key] = state
	}
	return found
}

// lists waits until of some locks those that are wanted are listed, with so many held
// and waiting, and no other.
func (s *subject) lists(idle bool, want map[lock.Key][2]int64, of ...lock.Key) {
	s.Helper()
	s.eventually("the list shows the locks as they are", func() bool {
		found := s.locks(idle)
		for _, k := range of {
			state, listed := found[k]
			counts, wanted := want[k]
			if listed != wanted || counts != [2]int64{state.Held, state.Waiting} {
				return false
			}
		}
		return true
	})
}

// dated checks a time that must be there, or must not.
func (s *subject) dated(what string, at time.Time, there bool, begun time.Time) {
	s.Helper()
	if at.IsZero() == there {
		s.broken("%s is %v; want a time: %t", what, at, there)
	}
	if there && (at.Before(begun.Add(-clocksDiffer)) || at.After(time.Now().Add(clocksDiffer))) {
		s.broken("%s is %v; it was after %v", what, at, begun)
	}
}

// later returns when even a coarse clock shows a later time than before.
func (s *subject) later() {
	timer := time.NewTimer(250 * time.Millisecond)
	defer timer.Stop()
	<-timer.C
}
