package memory

import "time"

// Idle locks are forgotten by amortised work: each stands in its shard's list
// in the order in which they became idle, and a timer takes those that are due
// off the list's head, a few at a time so that nobody waits long for the
// shard. Taking and giving back a slot moves a lock in and out of the list and
// never touches the timer while it is set.

const (
	forgetChunk   = 512         // how many locks are forgotten in one critical section
	forgetDelay   = time.Second // how late a lock may be forgotten, so that locks are forgotten together
	shrinkAtLeast = 1024        // maps that never grew beyond this are left as they are
)

func (sh *shard) becomeIdle(s *semaphore) {
	if s.idleNext != nil {
		return
	}
	s.idleSince = sh.backend.now()
	s.idlePrev, s.idleNext = sh.idle.idlePrev, &sh.idle
	s.idlePrev.idleNext = s
	sh.idle.idlePrev = s
	if !sh.sweeping {
		sh.scheduleForgetting()
	}
}

func (sh *shard) leaveIdle(s *semaphore) {
	if s.idleNext == nil {
		return
	}
	s.idlePrev.idleNext, s.idleNext.idlePrev = s.idleNext, s.idlePrev
	s.idlePrev, s.idleNext = nil, nil
}

func (sh *shard) remember(s *semaphore) {
	sh.locks[s.name] = s
	sh.most = max(sh.most, len(sh.locks))
}

// forget drops a lock that nothing is held of. A map does not give memory back
// when it gets empty, so a map with much room is copied into a smaller one:
// after as many deletions as pay for it.
func (sh *shard) forget(s *semaphore) {
	sh.leaveIdle(s)
	delete(sh.locks, s.name)
	sh.backend.locks.Add(-1)
	if sh.most > shrinkAtLeast && len(sh.locks) < sh.most/8 {
		smaller := make(map[string]*semaphore, len(sh.locks))
		for name, s := range sh.locks {
			smaller[name] = s
		}
		sh.locks, sh.most = smaller, len(smaller)
	}
}

func (sh *shard) forgetOldestIdle() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	oldest := sh.idle.idleNext
	if sh.closed || oldest == &sh.idle {
		return false
	}
	sh.forget(oldest)
	return true
}

// scheduleForgetting sets the timer for the lock that is idle longest, if there
// is one. Called with mu held.
func (sh *shard) scheduleForgetting() {
	oldest := sh.idle.idleNext
	sh.sweeping = oldest != &sh.idle
	if !sh.sweeping {
		return
	}
	after := sh.forgetAfter()
	due := oldest.idleSince + after + min(after/16, forgetDelay) - sh.backend.now()
	if sh.sweep == nil {
		sh.sweep = time.AfterFunc(due, sh.forgetDue)
	} else {
		sh.sweep.Reset(due)
	}
}

// rescheduleForgetting makes a changed forgetAfter take effect.
func (sh *shard) rescheduleForgetting() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.sweeping && !sh.closed {
		sh.scheduleForgetting()
	}
}

// forgetDue is the timer's callback. It ends when nothing is due, or the
// backend closed.
func (sh *shard) forgetDue() {
	for more := true; more; {
		more = sh.forgetSomeDue()
	}
}

func (sh *shard) forgetSomeDue() (more bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return false
	}
	now, after := sh.backend.now(), sh.forgetAfter()
	for range forgetChunk {
		oldest := sh.idle.idleNext
		if oldest == &sh.idle || oldest.idleSince+after > now {
			sh.scheduleForgetting()
			return false
		}
		sh.forget(oldest)
	}
	return true
}

func (sh *shard) forgetAfter() time.Duration {
	return time.Duration(sh.backend.forgetAfter.Load())
}
