package memory

import (
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// semaphore is the state of one lock. Its shard's mutex guards it.
//
// Invariants between operations: held() <= max; a waiter is queued only while
// held() == max; busy is nil if and only if there are no named holders and no
// waiters; and the semaphore is in one of its shard's rings if nothing is held.
// A million idle locks are kept in memory, so what an idle one does not need is
// behind busy.
type semaphore struct {
	name      string
	max       int64
	anonymous int64  // slots held without a name
	era       uint64 // of the anonymous slots: a new one each time the first is taken
	busy      *busy
	heldSince instant // when the first of the slots was taken; means nothing if none is held

	chained            *semaphore // the next one in the table's bucket
	idleSince          instant    // see forget.go
	idlePrev, idleNext *semaphore // the place in a ring of the shard
}

// busy is what only a lock with named holders or waiters has.
type busy struct {
	holders map[string]*holder
	queue   queue
}

// holder is a named slot.
type holder struct {
	name    string
	token   uint64
	since   instant
	answers int // acquires that returned this slot and did not give it back
	expires instant
	expiry  *time.Timer // nil if the slot has no TTL
}

func (s *semaphore) held() int64 {
	n := s.anonymous
	if s.busy != nil {
		n += int64(len(s.busy.holders))
	}
	return n
}

func (s *semaphore) waiting() int64 {
	if s.busy == nil {
		return 0
	}
	return s.busy.queue.len
}

func (s *semaphore) holder(name string) *holder {
	if s.busy == nil {
		return nil
	}
	return s.busy.holders[name]
}

func (s *semaphore) makeBusy() *busy {
	if s.busy == nil {
		s.busy = new(busy)
	}
	return s.busy
}

// settleBusy drops busy once there is nothing in it.
func (s *semaphore) settleBusy() {
	if s.busy != nil && len(s.busy.holders) == 0 && s.busy.queue.len == 0 {
		s.busy = nil
	}
}

func (s *semaphore) addHolder(h *holder) {
	b := s.makeBusy()
	if b.holders == nil {
		b.holders = make(map[string]*holder)
	}
	b.holders[h.name] = h
}

func (s *semaphore) removeHolder(h *holder) {
	if h.expiry != nil {
		h.expiry.Stop()
	}
	delete(s.busy.holders, h.name)
	s.settleBusy()
}

// dropHolders removes all holders of both kinds.
func (s *semaphore) dropHolders() {
	s.anonymous = 0
	if s.busy == nil {
		return
	}
	for _, h := range s.busy.holders {
		s.removeHolder(h)
	}
}

// describeHolders lists the named holders in no order.
func (s *semaphore) describeHolders(now instant) []lock.Holder {
	if s.busy == nil || len(s.busy.holders) == 0 {
		return nil
	}
	list := make([]lock.Holder, 0, len(s.busy.holders))
	for _, h := range s.busy.holders {
		list = append(list, lock.Holder{Name: h.name, Token: h.token, ExpiresIn: h.left(now)})
	}
	return list
}

// left returns how long a slot with a TTL has left, at least a nanosecond
// until it is freed, and zero for one without.
func (h *holder) left(now instant) time.Duration {
	if h.expiry == nil {
		return 0
	}
	return max(h.expires-now, 1)
}
