package memory

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/lockgateway/lockgateway/lock"
)

// queue is the places of a lock's waiters in arrival order. Entering at the
// tail, leaving from anywhere and taking the head are O(1).
type queue struct {
	head, tail *place
	len        int64
	named      map[string]*place // the places of named waiters, by holder
}

// place is one place in a queue: that of one anonymous waiter, or of all the
// waiters of one holder.
type place struct {
	prev, next *place
	holder     string
	since      instant // when the first of them came
	waiters    *waiter // a list, newest first; never empty while the place is queued
}

// waiter is one request in a queue.
type waiter struct {
	place      *place // nil once settled or gone
	prev, next *waiter
	ttl        time.Duration
	done       chan outcome // receives the outcome of a settled waiter; has room for it
}

// outcome is what a waiting request is told.
type outcome struct {
	result lock.AcquireResult
	err    error

	// by is the span of the request that freed the slot, if it was a traced one; else nil.
	by *trace.SpanContext
}

// join adds a waiter to the holder's place, or at the end of the queue.
func (q *queue) join(holder string, ttl time.Duration, now instant) *waiter {
	w := &waiter{ttl: ttl, done: make(chan outcome, 1)}
	p := q.named[holder]
	if p == nil {
		p = &place{holder: holder, since: now, prev: q.tail}
		if q.tail != nil {
			q.tail.next = p
		} else {
			q.head = p
		}
		q.tail = p
		q.len++
		if holder != "" {
			if q.named == nil {
				q.named = make(map[string]*place)
			}
			q.named[holder] = p
		}
	}
	w.place, w.next = p, p.waiters
	if w.next != nil {
		w.next.prev = w
	}
	p.waiters = w
	return w
}

func (q *queue) remove(p *place) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		q.head = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		q.tail = p.prev
	}
	p.prev, p.next = nil, nil
	q.len--
	if p.holder != "" {
		delete(q.named, p.holder)
	}
}

// settle ends the wait of every waiter of a place that has left the queue.
func (p *place) settle(o outcome) {
	for w := p.waiters; w != nil; w = w.next {
		w.place = nil
		w.done <- o
	}
	p.waiters = nil
}

// count returns how many requests wait at the place, and the TTL that they
// leave a granted slot with: that of the latest that gave one, as if they had
// acquired one after the other.
func (p *place) count() (waiters int, ttl time.Duration) {
	for w := p.waiters; w != nil; w = w.next {
		waiters++
		if ttl == 0 {
			ttl = w.ttl
		}
	}
	return waiters, ttl
}

// leave takes a waiter that gave up out of the queue, and its place with it if
// it was the last one there. It reports false if the waiter was settled.
func (s *semaphore) leave(w *waiter) bool {
	p := w.place
	if p == nil {
		return false
	}
	w.place = nil
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		p.waiters = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	if p.waiters == nil {
		s.busy.queue.remove(p)
		s.settleBusy()
	}
	return true
}

// withdraw resolves the queued requests of a holder as not acquired.
func (s *semaphore) withdraw(holder string) {
	if s.busy == nil {
		return
	}
	if p := s.busy.queue.named[holder]; p != nil {
		s.busy.queue.remove(p)
		p.settle(outcome{})
		s.settleBusy()
	}
}

// endQueue resolves all queued requests with o.
func (s *semaphore) endQueue(o outcome) {
	for s.waiting() > 0 {
		p := s.busy.queue.head
		s.busy.queue.remove(p)
		p.settle(o)
		s.settleBusy()
	}
}
