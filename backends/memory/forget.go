package memory

import "time"

// Idle locks are forgotten by amortised work. Reading the clock would be the
// dearest part of a release, so one that leaves a lock idle only puts it into
// its shard's young list. A timer, set while that list has locks, moves them to
// the old list with the time of the move, and forgets those that are due at
// that list's head; a few at a time, so that nobody waits long for the shard. A
// lock that is taken again stays where it is until the timer finds it held, or
// until it is idle again.

const (
	sweepChunk = 512         // how many locks are moved or forgotten in one critical section
	mostYouth  = time.Second // how long a lock stays young, which makes it forgotten late, at most
)

// young is the idleSince of a lock in the young list.
const young instant = -1

// ring is a doubly linked list of locks.
type ring struct{ sentinel semaphore }

func (r *ring) init() { r.sentinel.idlePrev, r.sentinel.idleNext = &r.sentinel, &r.sentinel }

func (r *ring) empty() bool { return r.sentinel.idleNext == &r.sentinel }

func (r *ring) first() *semaphore { return r.sentinel.idleNext }

// enterRing puts s at the end of a ring.
func (sh *shard) enterRing(r *ring, s *semaphore) {
	s.idlePrev, s.idleNext = r.sentinel.idlePrev, &r.sentinel
	s.idlePrev.idleNext, r.sentinel.idlePrev = s, s
	sh.backend.inRings.Add(1)
}

// leaveRing takes s out of the ring that it is in, if any.
func (sh *shard) leaveRing(s *semaphore) {
	if s.idleNext != nil {
		s.idlePrev.idleNext, s.idleNext.idlePrev = s.idleNext, s.idlePrev
		s.idlePrev, s.idleNext = nil, nil
		sh.backend.inRings.Add(-1)
	}
}

func (sh *shard) becomeIdle(s *semaphore) {
	if s.idleNext != nil && s.idleSince == young {
		return
	}
	sh.leaveRing(s)
	s.idleSince = young
	sh.enterRing(&sh.young, s)
	if !sh.aging {
		sh.scheduleSweep()
	}
}

// forget drops a lock that nothing is held of.
func (sh *shard) forget(s *semaphore) {
	sh.leaveRing(s)
	sh.locks.remove(s)
	sh.backend.locks.Add(-1)
}

// forgetOldestIdle makes room for another lock if some lock is idle.
func (sh *shard) forgetOldestIdle() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, r := range []*ring{&sh.old, &sh.young} {
		for !sh.closed && !r.empty() {
			s := r.first()
			if s.held() == 0 {
				sh.forget(s)
				return true
			}
			sh.leaveRing(s)
		}
	}
	return false
}

// scheduleSweep sets the timer for the end of the young locks' youth or for the
// oldest lock's being due, whichever is first. Called with mu held.
func (sh *shard) scheduleSweep() {
	sh.aging = !sh.young.empty()
	after := sh.forgetAfter()
	next := min(after/16, mostYouth)
	if !sh.old.empty() {
		due := after - (sh.backend.now() - sh.old.first().idleSince)
		if !sh.aging || due < next {
			next = due
		}
	} else if !sh.aging {
		return
	}
	if sh.sweeper == nil {
		sh.sweeper = time.AfterFunc(next, sh.sweep)
	} else {
		sh.sweeper.Reset(next)
	}
}

// rescheduleSweep makes a changed forgetAfter take effect.
func (sh *shard) rescheduleSweep() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !sh.closed {
		sh.scheduleSweep()
	}
}

// sweep is the timer's callback. It ends when nothing is left to do, or the
// backend closed.
func (sh *shard) sweep() {
	for more := true; more; {
		more = sh.sweepSome()
	}
}

func (sh *shard) sweepSome() (more bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return false
	}
	now, after := sh.backend.now(), sh.forgetAfter()
	for range sweepChunk {
		switch {
		case !sh.young.empty():
			s := sh.young.first()
			sh.leaveRing(s)
			if s.held() == 0 {
				s.idleSince = now
				sh.enterRing(&sh.old, s)
			}
		case !sh.old.empty() && sh.old.first().held() > 0:
			sh.leaveRing(sh.old.first())
		case !sh.old.empty() && now-sh.old.first().idleSince >= after:
			sh.forget(sh.old.first())
		default:
			sh.scheduleSweep()
			return false
		}
	}
	return true
}

func (sh *shard) forgetAfter() time.Duration {
	return time.Duration(sh.backend.forgetAfter.Load())
}
