package locktest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// fault is a deliberate mistake of the naive backend.
type fault string

const (
	sound                 fault = ""
	leaksSlotOnCancel     fault = "leaks the slot of a waiter that was cancelled at its grant"
	losesSlotOfTheGone    fault = "hands a slot to a waiter that has timed out"
	lastInFirstOut        fault = "hands slots to the newest waiter"
	overGrants            fault = "grants one slot too many"
	forgetsWaitersOnReset fault = "leaves the queue as it is on reset"
	firstDeathFrees       fault = "gives a slot back from under an answered holder when the first answer dies"
	repeatDeathFrees      fault = "gives a slot back from under an answered holder when a repeat dies"
	queuesHolderTwice     fault = "queues one holder twice"
	newcomerOvertakes     fault = "lets a newcomer overtake"
	repeatsToken          fault = "gives a token out twice"
	resetsToken           fault = "starts tokens again on reset"
	ignoresEra            fault = "gives back a slot that was released meanwhile"
	anonymousFreesNamed   fault = "frees a named slot by an anonymous release"
	releasesAnother       fault = "frees another holder's slot"
	keepsQueued           fault = "leaves the queued requests of a holder that releases"
	repeatTakesSlot       fault = "gives a holder a second slot"
	expiresEarly          fault = "lets a slot expire early"
	countsTTLFromRequest  fault = "counts a TTL from the request"
	neverRenews           fault = "does not renew a TTL"
	staleExpiry           fault = "lets an old TTL end a new slot"
	folds                 fault = "folds the case of ids"
	truncatesMaximum      fault = "takes huge maxima for one"
	placeEndsWithFirst    fault = "ends a shared place with its first request"
	countsBelowZero       fault = "counts below zero"
	zeroAfterReset        fault = "reads 0 after a reset"
	drainGrants           fault = "grants waiters on drain"
	ignoresWaitersLimit   fault = "ignores the limit of waiters"
	forgetsToTime         fault = "never times out"
)

// naive is a backend as plain as can be: one mutex, slices, and a goroutine
// wherever it is convenient. It passes the suite, unless it has a fault.
type naive struct {
	fault fault

	mu       sync.Mutex
	locks    map[string]*naiveLock
	token    uint64
	era      uint64
	waited   int64 // how many ever waited, for the fault that counts them
	draining bool
	closed   bool
}

type naiveLock struct {
	max       int64
	anonymous int64
	era       uint64
	holders   []*naiveHolder
	queue     []*naivePlace
	token     uint64    // the last one, for the fault that restarts them
	since     time.Time // when the first of the slots was taken
	first     time.Time // when somebody waited first, for the fault that shows it
}

type naiveHolder struct {
	name    string
	token   uint64
	since   time.Time
	answers int
	expires time.Time
}

type naivePlace struct {
	holder   string
	since    time.Time
	requests []*naiveRequest
}

type naiveRequest struct {
	lock.AcquireRequest
	begun time.Time
	done  chan struct{} // closed once res or err are set
	res   lock.AcquireResult
	err   error
}

func newNaive(f fault) *naive { return &naive{fault: f, locks: make(map[string]*naiveLock)} }

func (b *naive) name(k lock.Key) string {
	switch b.fault {
	case folds:
		n := []byte(k.Name())
		for i, c := range n {
			if 'A' <= c && c <= 'Z' {
				n[i] = c + 'a' - 'A'
			}
		}
		return string(n)
	case truncatesMaximum:
		return string(rune(k.Max()%1000)) + k.ID()
	}
	return k.Name()
}

func (b *naive) lock(k lock.Key) *naiveLock {
	l := b.locks[b.name(k)]
	if l == nil {
		l = &naiveLock{max: k.Max()}
		if b.fault == overGrants && l.max > 1 {
			l.max++
		}
		b.locks[b.name(k)] = l
	}
	return l
}

func (l *naiveLock) held() int64 { return l.anonymous + int64(len(l.holders)) }

func (l *naiveLock) holder(name string) *naiveHolder {
	for _, h := range l.holders {
		if h.name == name && name != "" {
			return h
		}
	}
	return nil
}

func (b *naive) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	r := &naiveRequest{AcquireRequest: req, begun: time.Now(), done: make(chan struct{})}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return lock.AcquireResult{}, lock.ErrClosing
	}
	l := b.lock(req.Key)
	switch h := l.holder(req.Holder); {
	case h != nil && b.fault != repeatTakesSlot:
		if req.TTL > 0 && b.fault != neverRenews {
			b.expireAfter(l, h, req.TTL)
		}
		h.answers++
		res := lock.AcquireResult{Acquired: true, Value: l.held(), Token: h.token, ExpiresIn: h.left()}
		b.mu.Unlock()
		return res, nil
	case l.held() < l.max && (len(l.queue) == 0 || b.fault == newcomerOvertakes):
		b.grant(l, &naivePlace{holder: req.Holder, requests: []*naiveRequest{r}})
		b.mu.Unlock()
		return r.res, nil
	case req.Wait <= 0:
		b.mu.Unlock()
		return lock.AcquireResult{}, nil
	case b.draining:
		b.mu.Unlock()
		return lock.AcquireResult{}, lock.ErrClosing
	}
	var place *naivePlace
	for _, p := range l.queue {
		if p.holder == req.Holder && req.Holder != "" && b.fault != queuesHolderTwice {
			place = p
		}
	}
	if place == nil {
		if req.MaxWaiters > 0 && int64(len(l.queue)) >= req.MaxWaiters && b.fault != ignoresWaitersLimit {
			b.mu.Unlock()
			return lock.AcquireResult{}, &lock.LimitError{Limit: "max_waiters", Max: req.MaxWaiters}
		}
		place = &naivePlace{holder: req.Holder, since: r.begun}
		l.queue = append(l.queue, place)
		b.waited++
		if l.first.IsZero() {
			l.first = r.begun
		}
	}
	place.requests = append(place.requests, r)
	b.mu.Unlock()
	return b.await(ctx, l, place, r)
}

func (b *naive) await(ctx context.Context, l *naiveLock, place *naivePlace, r *naiveRequest) (lock.AcquireResult, error) {
	var timeout <-chan time.Time
	if b.fault != forgetsToTime {
		timeout = time.After(r.Wait)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	case <-timeout:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-r.done:
		if err := ctx.Err(); err != nil {
			if r.res.Acquired && b.fault != leaksSlotOnCancel {
				b.giveBack(l, r.AcquireRequest, r.res)
			}
			return lock.AcquireResult{}, err
		}
		return r.res, r.err
	default:
	}
	if b.fault == losesSlotOfTheGone && ctx.Err() == nil {
		return lock.AcquireResult{}, nil
	}
	place.requests = slices.DeleteFunc(place.requests, func(o *naiveRequest) bool { return o == r })
	if b.fault == placeEndsWithFirst && len(place.requests) > 0 {
		l.queue = slices.DeleteFunc(l.queue, func(p *naivePlace) bool { return p == place })
		l.queue = append(l.queue, place)
	}
	if len(place.requests) == 0 {
		l.queue = slices.DeleteFunc(l.queue, func(p *naivePlace) bool { return p == place })
	}
	return lock.AcquireResult{}, ctx.Err()
}

// grant gives a slot to the requests of a place.
func (b *naive) grant(l *naiveLock, p *naivePlace) {
	res := lock.AcquireResult{Acquired: true}
	if l.held() == 0 {
		l.since = time.Now()
	}
	if p.holder == "" {
		if l.anonymous <= 0 {
			b.era++
			l.era = b.era
		}
		l.anonymous++
		res.Mark = l.era
	} else {
		token := &b.token
		if b.fault == resetsToken {
			token = &l.token
		}
		if *token++; b.fault == repeatsToken && l.held() > 0 {
			*token--
		}
		h := &naiveHolder{name: p.holder, token: *token, since: time.Now(), answers: len(p.requests)}
		l.holders = append(l.holders, h)
		for _, r := range p.requests {
			ttl := r.TTL
			if b.fault == expiresEarly {
				ttl /= 2
			}
			if b.fault == countsTTLFromRequest && ttl > 0 {
				ttl = max(ttl-time.Since(r.begun), 1)
			}
			if ttl > 0 {
				b.expireAfter(l, h, ttl)
				if b.fault == expiresEarly {
					h.expires = h.expires.Add(ttl)
				}
			}
		}
		res.Token, res.ExpiresIn = h.token, h.left()
		if h.expires.IsZero() {
			res.ExpiresIn = 0
		} else if r := p.requests[len(p.requests)-1]; res.ExpiresIn < r.TTL && b.fault != countsTTLFromRequest {
			res.ExpiresIn = r.TTL // the clock has moved since
		}
	}
	res.Value = l.held()
	for _, r := range p.requests {
		r.res = res
		close(r.done)
	}
}

func (h *naiveHolder) left() time.Duration {
	if h.expires.IsZero() {
		return 0
	}
	return max(time.Until(h.expires), 1)
}

func (b *naive) expireAfter(l *naiveLock, h *naiveHolder, ttl time.Duration) {
	h.expires = time.Now().Add(ttl)
	if h.expires.Before(time.Now()) { // too far away for a time
		h.expires = time.Now().Add(lock.Forever / 2)
	}
	expires := h.expires
	time.AfterFunc(ttl, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		now := l.holder(h.name)
		if b.fault == staleExpiry && now != nil {
			b.free(l, now)
		}
		if now == h && h.expires.Equal(expires) || b.fault == expiresEarly && now == h {
			b.free(l, h)
		}
	})
}

func (b *naive) free(l *naiveLock, h *naiveHolder) {
	l.holders = slices.DeleteFunc(l.holders, func(o *naiveHolder) bool { return o == h })
	b.handOn(l)
}

func (b *naive) handOn(l *naiveLock) {
	if b.fault == newcomerOvertakes {
		time.AfterFunc(2*time.Millisecond, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.handOnNow(l)
		})
		return
	}
	b.handOnNow(l)
}

func (b *naive) handOnNow(l *naiveLock) {
	for l.held() < l.max && len(l.queue) > 0 {
		i := 0
		if b.fault == lastInFirstOut {
			i = len(l.queue) - 1
		}
		p := l.queue[i]
		l.queue = slices.Delete(l.queue, i, i+1)
		b.grant(l, p)
	}
}

func (b *naive) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.draining {
		return lock.ErrClosing
	}
	return nil
}

func (b *naive) GiveBack(_ context.Context, req lock.AcquireRequest, res lock.AcquireResult) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return lock.ErrClosing
	}
	if l := b.locks[b.name(req.Key)]; l != nil {
		b.giveBack(l, req, res)
	}
	return nil
}

func (b *naive) giveBack(l *naiveLock, req lock.AcquireRequest, res lock.AcquireResult) {
	if req.Holder == "" {
		if l.anonymous > 0 && (l.era == res.Mark || b.fault == ignoresEra) {
			l.anonymous--
			b.handOn(l)
		}
		return
	}
	h := l.holder(req.Holder)
	if h == nil || h.token != res.Token {
		return
	}
	h.answers--
	if h.answers == 0 || b.fault == firstDeathFrees || b.fault == repeatDeathFrees && h.answers == 1 {
		b.free(l, h)
	}
}

func (b *naive) Release(_ context.Context, k lock.Key, holder string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false, lock.ErrClosing
	}
	l := b.locks[b.name(k)]
	if l == nil {
		return false, nil
	}
	if holder == "" {
		if l.anonymous <= 0 && b.fault != countsBelowZero {
			if b.fault == anonymousFreesNamed && len(l.holders) > 0 {
				b.free(l, l.holders[0])
				return true, nil
			}
			return false, nil
		}
		l.anonymous--
		b.handOn(l)
		return true, nil
	}
	if b.fault != keepsQueued {
		l.queue = slices.DeleteFunc(l.queue, func(p *naivePlace) bool {
			if p.holder != holder {
				return false
			}
			for _, r := range p.requests {
				close(r.done)
			}
			return true
		})
	}
	h := l.holder(holder)
	if h == nil && b.fault == releasesAnother && len(l.holders) > 0 {
		h = l.holders[0]
	}
	if h == nil {
		return false, nil
	}
	b.free(l, h)
	return true, nil
}

func (b *naive) Value(_ context.Context, k lock.Key, detail bool) (lock.Value, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return lock.Value{}, lock.ErrClosing
	}
	l := b.locks[b.name(k)]
	if l == nil {
		return lock.Value{Fresh: true}, nil
	}
	v := lock.Value{Held: l.held()}
	if detail {
		v.Waiting = int64(len(l.queue))
		for _, h := range l.holders {
			v.Holders = append(v.Holders, lock.Holder{Name: h.name, Token: h.token, ExpiresIn: h.left()})
		}
	}
	return v, nil
}

func (b *naive) Reset(_ context.Context, k lock.Key) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return lock.ErrClosing
	}
	l := b.locks[b.name(k)]
	if l == nil {
		return nil
	}
	if b.fault != forgetsWaitersOnReset {
		b.endQueue(l, nil)
	}
	l.anonymous, l.holders = 0, nil
	if b.fault != zeroAfterReset {
		delete(b.locks, b.name(k))
	}
	return nil
}

func (b *naive) endQueue(l *naiveLock, err error) {
	for _, p := range l.queue {
		for _, r := range p.requests {
			r.err = err
			close(r.done)
		}
	}
	l.queue = nil
}

func (b *naive) Drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draining = true
	for _, l := range b.locks {
		if b.fault == drainGrants {
			l.anonymous = 0
			b.handOn(l)
		}
		b.endQueue(l, lock.ErrClosing)
	}
}

func (b *naive) Close() error {
	b.Drain()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, l := range b.locks {
		l.holders = nil
	}
	return nil
}
