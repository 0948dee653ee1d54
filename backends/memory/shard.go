package memory

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/lockgateway/lockgateway/lock"
)

// shard is the part of the locks whose keys hash alike.
type shard struct {
	backend *Backend

	mu       sync.Mutex // guards all below, and the semaphores in locks
	locks    table
	young    ring        // locks that became idle since the last sweep, and maybe were taken again
	old      ring        // locks that were idle at a sweep, longest idle first, and maybe were taken again
	sweeper  *time.Timer // forgets idle locks; see forget.go
	aging    bool        // whether sweeper is set for the young locks
	tokens   uint64      // the last fencing token
	eras     uint64      // the last era
	draining bool

	// releasing is the span of the release that has the mutex now, if it is traced
	// and somebody waits; else nil.
	releasing *trace.SpanContext
	closed    bool
}

func (sh *shard) init(b *Backend, firstToken uint64) {
	sh.backend = b
	sh.tokens = firstToken
	sh.locks = newTable(b.seed)
	sh.young.init()
	sh.old.init()
}

// grantAnonymous gives a free slot to nobody by name. It returns the parts of
// the result: copying a whole one made an uncontended acquire half as slow again.
func (sh *shard) grantAnonymous(s *semaphore) (value int64, mark uint64) {
	if s.anonymous == 0 {
		sh.eras++
		s.era = sh.eras
		if s.held() == 0 {
			s.heldSince = sh.backend.coarse.now()
		}
	}
	s.anonymous++
	return s.held(), s.era
}

// grant gives a free slot to holder, or to nobody by name, and counts so many
// answers for it.
func (sh *shard) grant(s *semaphore, name string, ttl time.Duration, answers int) lock.AcquireResult {
	if name == "" {
		value, mark := sh.grantAnonymous(s)
		return lock.AcquireResult{Acquired: true, Value: value, Mark: mark}
	}
	sh.tokens++
	h := &holder{name: name, token: sh.tokens, answers: answers, since: sh.backend.coarse.now()}
	if s.held() == 0 {
		s.heldSince = h.since
	}
	s.addHolder(h)
	if ttl > 0 {
		sh.setExpiry(s, h, ttl)
	}
	return lock.AcquireResult{Acquired: true, Value: s.held(), Token: h.token, ExpiresIn: max(ttl, 0)}
}

// repeat answers a holder that has its slot already.
func (sh *shard) repeat(s *semaphore, name string, ttl time.Duration) (lock.AcquireResult, bool) {
	h := s.holder(name)
	if h == nil {
		return lock.AcquireResult{}, false
	}
	now := sh.backend.now()
	if h.expiry != nil && h.expires <= now {
		// Its timer is about to say so. A slot that has run out is not
		// renewed: those who wait for it come first.
		sh.releaseNamed(s, h)
		return lock.AcquireResult{}, false
	}
	if ttl > 0 {
		sh.setExpiry(s, h, ttl)
	}
	h.answers++
	return lock.AcquireResult{Acquired: true, Value: s.held(), Token: h.token, ExpiresIn: h.left(now)}, true
}

// enqueue queues a request that cannot be served at once.
func (sh *shard) enqueue(s *semaphore, req lock.AcquireRequest) (*waiter, error) {
	if sh.draining {
		return nil, lock.ErrClosing
	}
	if req.MaxWaiters > 0 && s.waiting() >= req.MaxWaiters {
		shares := req.Holder != "" && s.busy.queue.named[req.Holder] != nil
		if !shares {
			return nil, &lock.LimitError{Limit: "max_waiters", Max: req.MaxWaiters}
		}
	}
	return s.makeBusy().queue.join(req.Holder, max(req.TTL, 0), sh.backend.coarse.now()), nil
}

func (sh *shard) releaseAnonymous(s *semaphore) {
	s.anonymous--
	sh.handOn(s)
}

func (sh *shard) releaseNamed(s *semaphore, h *holder) {
	s.removeHolder(h)
	sh.handOn(s)
}

// handOn gives the freed slots to the head of the queue, inside the critical
// section that freed them: there is no moment at which a newcomer could find
// one.
func (sh *shard) handOn(s *semaphore) {
	for s.waiting() > 0 && s.held() < s.max {
		p := s.busy.queue.head
		answers, ttl := p.count()
		s.busy.queue.remove(p)
		p.settle(outcome{result: sh.grant(s, p.holder, ttl, answers), by: sh.releasing})
		s.settleBusy()
	}
	if s.anonymous == 0 && s.busy == nil {
		sh.becomeIdle(s)
	}
}

// drain ends all waiting, and if closing forgets everything.
func (sh *shard) drain(closing bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.draining && !closing || sh.closed {
		return
	}
	sh.draining = true
	for s := range sh.locks.all {
		s.endQueue(outcome{err: lock.ErrClosing})
		if closing {
			s.dropHolders()
		}
	}
	if closing {
		sh.closed = true
		if sh.sweeper != nil {
			sh.sweeper.Stop()
		}
		sh.locks = newTable(sh.backend.seed)
		sh.young, sh.old = ring{}, ring{}
	}
}
