package memory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/lockgateway/lockgateway/backends/memory"
	"github.com/lockgateway/lockgateway/lock"
)

// TestBehavesLikeTheModel does random things to a backend and to a model of
// the contract that is as plain as can be, and wants the same from both, to the
// nanosecond of a fake clock.
func TestBehavesLikeTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := plans.Draw(rt, "plan")
		var err error
		synctest.Test(t, func(*testing.T) { _, err = follow(plan) })
		if errors.Is(err, errTie) {
			rt.Skip(err)
		}
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// modelForgetAfter is short, so that plans can outlast it.
const (
	modelForgetAfter = 100 * time.Millisecond
	modelForgetLate  = modelForgetAfter / 16
)

var modelMaxima = []string{"1", "2", "3"} // of the keys, which a step names by index

// action is what a step does.
type action string

const (
	acquire  action = "acquire"
	cancel   action = "cancel"
	sleep    action = "sleep"
	release  action = "release"
	reset    action = "reset"
	giveBack action = "give back"
	drain    action = "drain"
)

// step is one thing that a plan does. Each action uses some of the fields.
type step struct {
	do         action
	key        int
	holder     string
	wait, ttl  time.Duration // of an acquire; wait is also how long to sleep
	maxWaiters int64
	pick       int // which one of the candidates to cancel or give back
}

func (s step) String() string {
	switch s.do {
	case acquire:
		return fmt.Sprintf("acquire key %d holder %q wait %v ttl %v max waiters %d", s.key, s.holder, s.wait, s.ttl, s.maxWaiters)
	case release:
		return fmt.Sprintf("release key %d holder %q", s.key, s.holder)
	case reset:
		return fmt.Sprintf("reset key %d", s.key)
	case cancel, giveBack:
		return fmt.Sprintf("%s number %d", s.do, s.pick)
	case sleep:
		return fmt.Sprintf("sleep %v", s.wait)
	default:
		return string(s.do)
	}
}

// actions are what steps are drawn from, the first and the last more often than
// the others, and all acquires put together.
var actions = slices.Concat(
	slices.Repeat([]action{acquire, release, acquire, sleep, acquire, giveBack, acquire, cancel}, 4),
	[]action{release, sleep, reset, giveBack, acquire},
	slices.Repeat([]action{acquire, release, acquire, sleep, acquire, giveBack, acquire, release}, 4),
	[]action{drain},
	slices.Repeat([]action{acquire, release, acquire, sleep, acquire, giveBack, acquire, release}, 4),
)

// plans are concatenations of slices, since drawn slices are short.
var plans = rapid.Map(rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(drawStep), 1, -1), 1, 30), func(parts [][]step) []step {
	return slices.Concat(parts...)
})

func drawStep(t *rapid.T) step {
	milliseconds := func(label string, from ...int) time.Duration {
		return time.Duration(rapid.SampledFrom(from).Draw(t, label)) * time.Millisecond
	}
	s := step{do: rapid.SampledFrom(actions).Draw(t, "do")}
	switch s.do {
	case acquire:
		s.key = rapid.IntRange(0, len(modelMaxima)-1).Draw(t, "key")
		s.holder = rapid.SampledFrom([]string{"", "", "", "a", "b", "c", "d"}).Draw(t, "holder")
		s.ttl = milliseconds("ttl", 0, 0, 1, 3, 10, 30, 200)
		if s.wait = milliseconds("wait", 0, 1, 4, 10, 40, -1, -1, -1); s.wait < 0 {
			s.wait = lock.Forever
		}
		s.maxWaiters = rapid.SampledFrom([]int64{0, 0, 0, 1, 2}).Draw(t, "maxWaiters")
	case release:
		s.key = rapid.IntRange(0, len(modelMaxima)-1).Draw(t, "key")
		s.holder = rapid.SampledFrom([]string{"", "", "a", "b", "c", "d"}).Draw(t, "holder")
	case reset:
		s.key = rapid.IntRange(0, len(modelMaxima)-1).Draw(t, "key")
	case sleep:
		s.wait = milliseconds("sleep", 0, 1, 2, 5, 10, 20, 50, 99, 103, 107, 250)
	case cancel, giveBack:
		s.pick = rapid.IntRange(0, 9).Draw(t, "pick")
	case drain:
	}
	return s
}

// unlike makes durations that whole milliseconds would make meet differ, and
// their sums too: what happens first of two things due at the same instant is
// nobody's promise.
func unlike(d time.Duration, n int) time.Duration {
	if d <= 0 || d == lock.Forever {
		return d
	}
	n++
	return d + time.Duration(n*n*n*7919%999_983)
}

// errTie says that a plan made two things due at the same instant all the same.
var errTie = errors.New("two things are due at the same instant")

// call is an acquire of a plan, in the backend and in the model.
type call struct {
	req    lock.AcquireRequest
	cancel context.CancelFunc

	// What the backend said; set when ended.
	ended bool
	res   lock.AcquireResult
	err   error

	want     *answer // what the model said; nil while it waits
	returned bool    // whether the answer was given back
}

// answer is what the model tells an acquire.
type answer struct {
	err       error
	acquired  bool
	value     int64
	grant     *modelHolder // of a named slot
	era       int          // of an anonymous one
	expiresIn time.Duration
}

// follow carries out a plan in a bubble. Its error says where the backend did
// something else than the model.
func follow(plan []step) (*model, error) {
	backend := memory.New(memory.Options{ForgetAfter: modelForgetAfter})
	r := &run{backend: backend, model: &model{seen: make(map[string]bool)}, tokens: make(map[*modelHolder]uint64)}
	for i, maxValue := range modelMaxima {
		k, err := lock.NewKey(maxValue, "id")
		if err != nil {
			return nil, err
		}
		r.keys = append(r.keys, k)
		r.model.locks = append(r.model.locks, &modelLock{max: int64(i + 1)})
	}

	err := r.steps(plan)
	r.model.drain()
	if closeErr := backend.Close(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	synctest.Wait()
	if err == nil {
		if err = r.compareCalls(); err != nil {
			err = fmt.Errorf("after close: %w", err)
		}
	}
	return r.model, err
}

// run is a plan under way.
type run struct {
	backend *memory.Backend
	keys    []lock.Key
	model   *model
	calls   []*call
	tokens  map[*modelHolder]uint64 // what the backend called the model's grants
}

func (r *run) steps(plan []step) error {
	done := "after:\n"
	for n, s := range plan {
		s.wait, s.ttl = unlike(s.wait, 2*n), unlike(s.ttl, 2*n+1)
		done += fmt.Sprintf("%12v  %v\n", r.model.now, s)
		if err := r.step(s); err != nil {
			return fmt.Errorf("%s%w", done, err)
		}
		synctest.Wait()
		if err := errors.Join(r.compareCalls(), r.compareTokens(), r.compareValues()); err != nil {
			return fmt.Errorf("%s%w", done, err)
		}
	}
	return nil
}

func (r *run) step(s step) error {
	ctx := context.Background()
	switch s.do {
	case acquire:
		c := &call{req: lock.AcquireRequest{Key: r.keys[s.key], Wait: s.wait, Holder: s.holder, TTL: s.ttl, MaxWaiters: s.maxWaiters}}
		r.calls = append(r.calls, c)
		r.model.acquire(r.model.locks[s.key], c)
		var ctx context.Context
		ctx, c.cancel = context.WithCancel(context.Background())
		go func() { // ends with the acquire, which the backend's Close ends
			defer c.cancel()
			c.res, c.err = r.backend.Acquire(ctx, c.req)
			c.ended = true
		}()
	case cancel:
		if c := choose(r.calls, s.pick, func(c *call) bool { return c.want == nil }); c != nil {
			r.model.leave(c, &answer{err: context.Canceled})
			c.cancel()
		}
	case sleep:
		if !r.model.advance(s.wait) {
			return errTie
		}
		time.Sleep(s.wait)
	case release:
		want := r.model.release(r.model.locks[s.key], s.holder)
		if got, err := r.backend.Release(ctx, r.keys[s.key], s.holder); err != nil || got != want {
			return fmt.Errorf("release gave %s; want %t", said(got, err), want)
		}
	case reset:
		r.model.reset(r.model.locks[s.key])
		return r.backend.Reset(ctx, r.keys[s.key])
	case giveBack:
		undelivered := func(c *call) bool { return c.want != nil && c.want.acquired && !c.returned }
		if c := choose(r.calls, s.pick, undelivered); c != nil {
			c.returned = true
			r.model.giveBack(r.lockOf(c), c)
			return r.backend.GiveBack(ctx, c.req, c.res)
		}
	case drain:
		r.model.drain()
		r.backend.Drain()
	}
	return nil
}

// choose returns one of the calls that are fit, counted from the latest.
func choose(calls []*call, pick int, fit func(*call) bool) *call {
	var candidates []*call
	for _, c := range calls {
		if fit(c) {
			candidates = append(candidates, c)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	return candidates[len(candidates)-1-pick%len(candidates)]
}

func (r *run) keyIndex(c *call) int { return slices.Index(r.keys, c.req.Key) }

func (r *run) lockOf(c *call) *modelLock { return r.model.locks[r.keyIndex(c)] }

func (r *run) compareCalls() error {
	for n, c := range r.calls {
		what := fmt.Sprintf("acquire %d, of key %d by %q,", n, r.keyIndex(c), c.req.Holder)
		switch {
		case c.ended && c.want == nil:
			return fmt.Errorf("%s got %s; want it to wait", what, said(c.res, c.err))
		case !c.ended && c.want != nil:
			return fmt.Errorf("%s waits; want %+v", what, *c.want)
		case !c.ended:
			continue
		}
		want := lock.AcquireResult{Acquired: c.want.acquired, Value: c.want.value, ExpiresIn: c.want.expiresIn, Mark: c.res.Mark}
		if g := c.want.grant; g != nil {
			if _, known := r.tokens[g]; !known {
				r.tokens[g] = c.res.Token
			}
			want.Token, want.Mark = r.tokens[g], 0
		}
		if !c.want.acquired {
			want.Mark = 0
		}
		if c.res != want || !sameError(c.err, c.want.err) {
			return fmt.Errorf("%s got %s; want %s", what, said(c.res, c.err), said(want, c.want.err))
		}
	}
	return nil
}

// compareTokens checks that the tokens of each lock grow from grant to grant.
// Each grant was answered to somebody, so all its tokens are known.
func (r *run) compareTokens() error {
	for i, l := range r.model.locks {
		last := uint64(0)
		for _, g := range l.grants {
			if r.tokens[g] <= last {
				return fmt.Errorf("key %d granted %q the token %d after %d", i, g.name, r.tokens[g], last)
			}
			last = r.tokens[g]
		}
	}
	return nil
}

func sameError(got, want error) bool {
	var gotLimit, wantLimit *lock.LimitError
	if errors.As(got, &gotLimit) && errors.As(want, &wantLimit) {
		return *gotLimit == *wantLimit
	}
	return errors.Is(got, want)
}

// said describes what the backend said, or should have said.
func said(result any, err error) string { return fmt.Sprintf("%+v, error %v", result, err) }

func (r *run) compareValues() error {
	for i, k := range r.keys {
		l := r.model.locks[i]
		got, err := r.backend.Value(context.Background(), k, true)
		if err != nil {
			return err
		}
		if got.Held > l.max {
			return fmt.Errorf("key %d has %d holders", i, got.Held)
		}
		want := lock.Value{Held: l.held(), Waiting: int64(len(l.queue))}
		for _, h := range l.holders {
			holder := lock.Holder{Name: h.name, Token: r.tokens[h]}
			if h.expires != 0 {
				holder.ExpiresIn = h.expires - r.model.now
			}
			want.Holders = append(want.Holders, holder)
		}
		idle := r.model.now - l.idleSince
		switch {
		case !l.used:
			want.Fresh = true
		case l.held() > 0:
		case idle > modelForgetAfter+modelForgetLate:
			r.model.seen["a lock forgotten"] = true
			want.Fresh = true
		case idle >= modelForgetAfter:
			want.Fresh = got.Fresh
		}
		if want.Fresh {
			l.used = false
		}
		if got.Fresh != want.Fresh || got.Held != want.Held || got.Waiting != want.Waiting || !slices.Equal(got.Holders, want.Holders) {
			return fmt.Errorf("key %d, idle for %v, has the value %+v; want %+v", i, idle, got, want)
		}
		plain, err := r.backend.Value(context.Background(), k, false)
		if err != nil || plain.Fresh != want.Fresh || plain.Held != want.Held || plain.Waiting != 0 || plain.Holders != nil {
			return fmt.Errorf("without detail key %d has the value %s; want that of %+v", i, said(plain, err), want)
		}
	}
	return nil
}

// model is locks as the contract has them.
type model struct {
	now      time.Duration
	locks    []*modelLock
	draining bool
	seen     map[string]bool // what happened that not every plan makes happen
}

type modelLock struct {
	max       int64
	used      bool // whether its value is not that of a lock never acquired
	idleSince time.Duration
	anonymous int64
	era       int            // counts how often the anonymous slots rose from 0
	holders   []*modelHolder // in the order of their grants
	grants    []*modelHolder // all that ever were, in order
	queue     []*modelPlace  // in arrival order
}

type modelHolder struct {
	name    string
	answers int
	expires time.Duration // 0 is never
}

// modelPlace is a place in the queue; requests of one holder share one.
type modelPlace struct {
	holder   string
	requests []*modelRequest // in arrival order; never none
}

type modelRequest struct {
	call     *call
	deadline time.Duration // 0 is never
}

func (l *modelLock) held() int64 { return l.anonymous + int64(len(l.holders)) }

func (l *modelLock) holder(name string) *modelHolder {
	for _, h := range l.holders {
		if h.name == name {
			return h
		}
	}
	return nil
}

func (l *modelLock) place(holder string) *modelPlace {
	for _, p := range l.queue {
		if holder != "" && p.holder == holder {
			return p
		}
	}
	return nil
}

func (m *model) acquire(l *modelLock, c *call) {
	if h := l.holder(c.req.Holder); c.req.Holder != "" && h != nil {
		m.seen["a repeat"] = true
		h.answers++
		c.want = &answer{acquired: true, value: l.held(), grant: h}
		if c.req.TTL > 0 {
			m.seen["a renewal"] = true
			h.expires = m.now + c.req.TTL
		}
		if h.expires != 0 {
			c.want.expiresIn = h.expires - m.now
		}
		return
	}
	p := l.place(c.req.Holder)
	switch {
	case l.held() < l.max && len(l.queue) == 0:
		m.grant(l, &modelPlace{holder: c.req.Holder, requests: []*modelRequest{{call: c}}})
		return
	case c.req.Wait <= 0:
		c.want = &answer{}
		return
	case m.draining:
		m.seen["a refusal to wait"] = true
		c.want = &answer{err: lock.ErrClosing}
		return
	case p == nil && c.req.MaxWaiters > 0 && int64(len(l.queue)) >= c.req.MaxWaiters:
		m.seen["a limit reached"] = true
		c.want = &answer{err: &lock.LimitError{Limit: "max_waiters", Max: c.req.MaxWaiters}}
		return
	case p == nil:
		p = &modelPlace{holder: c.req.Holder}
		l.queue = append(l.queue, p)
	}
	q := &modelRequest{call: c}
	if c.req.Wait != lock.Forever {
		q.deadline = m.now + c.req.Wait
	}
	p.requests = append(p.requests, q)
}

// grant gives a slot to the requests of a place that is not queued any more.
func (m *model) grant(l *modelLock, p *modelPlace) {
	l.used = true
	if p.holder == "" {
		if l.anonymous == 0 {
			l.era++
		}
		l.anonymous++
		p.requests[0].call.want = &answer{acquired: true, value: l.held(), era: l.era}
		return
	}
	if len(p.requests) > 1 {
		m.seen["a shared grant"] = true
	}
	// As if they acquired one after the other, at this moment.
	h := &modelHolder{name: p.holder, answers: len(p.requests)}
	var ttl time.Duration
	for _, q := range p.requests {
		if q.call.req.TTL > 0 {
			ttl = q.call.req.TTL
			h.expires = m.now + ttl
		}
	}
	l.holders, l.grants = append(l.holders, h), append(l.grants, h)
	for _, q := range p.requests {
		q.call.want = &answer{acquired: true, value: l.held(), grant: h, expiresIn: ttl}
	}
}

// freed hands a slot on that has just been freed.
func (m *model) freed(l *modelLock) {
	if len(l.queue) > 0 {
		p := l.queue[0]
		l.queue = l.queue[1:]
		m.seen["a handover"] = true
		m.grant(l, p)
	}
	if l.held() == 0 {
		l.idleSince = m.now
	}
}

func (m *model) freeAnonymous(l *modelLock) {
	l.anonymous--
	m.freed(l)
}

func (m *model) freeNamed(l *modelLock, h *modelHolder) {
	l.holders = slices.DeleteFunc(l.holders, func(other *modelHolder) bool { return other == h })
	m.freed(l)
}

func (m *model) release(l *modelLock, holder string) bool {
	if holder == "" {
		if l.anonymous == 0 {
			return false
		}
		m.freeAnonymous(l)
		return true
	}
	if p := l.place(holder); p != nil {
		m.seen["a withdrawal"] = true
		m.end(l, p, &answer{})
	}
	h := l.holder(holder)
	if h == nil {
		return false
	}
	m.freeNamed(l, h)
	return true
}

func (m *model) giveBack(l *modelLock, c *call) {
	if c.req.Holder == "" {
		if l.anonymous > 0 && c.want.era == l.era {
			m.freeAnonymous(l)
		} else if l.anonymous > 0 {
			m.seen["a give-back from an era before"] = true
		}
		return
	}
	h := c.want.grant
	if !slices.Contains(l.holders, h) {
		m.seen["a give-back of a grant that ended"] = true
		return
	}
	h.answers--
	if h.answers > 0 {
		m.seen["a give-back of one answer of several"] = true
		return
	}
	m.seen["a give-back of the last answer"] = true
	m.freeNamed(l, h)
}

func (m *model) reset(l *modelLock) {
	for len(l.queue) > 0 {
		m.seen["a reset of a queue"] = true
		m.end(l, l.queue[0], &answer{})
	}
	l.anonymous, l.holders, l.used = 0, nil, false
}

func (m *model) drain() {
	m.draining = true
	for _, l := range m.locks {
		for len(l.queue) > 0 {
			m.end(l, l.queue[0], &answer{err: lock.ErrClosing})
		}
	}
}

// end takes a place out of the queue and answers its requests.
func (m *model) end(l *modelLock, p *modelPlace, a *answer) {
	l.queue = slices.DeleteFunc(l.queue, func(other *modelPlace) bool { return other == p })
	for _, q := range p.requests {
		q.call.want = a
	}
}

// leave takes one request out of its queue, and its place if it was the last.
func (m *model) leave(c *call, a *answer) {
	c.want = a
	for _, l := range m.locks {
		for _, p := range l.queue {
			if len(p.requests) > 1 {
				m.seen["a shared place, when somebody leaves"] = true
			}
			p.requests = slices.DeleteFunc(p.requests, func(q *modelRequest) bool { return q.call == c })
		}
		l.queue = slices.DeleteFunc(l.queue, func(p *modelPlace) bool { return len(p.requests) == 0 })
	}
}

// advance lets time pass. It returns false if two things were due at the same
// instant, or one at the very end.
func (m *model) advance(d time.Duration) bool {
	end := m.now + d
	for {
		var due []func()
		next := end
		consider := func(at time.Duration, happen func()) {
			switch {
			case at == 0 || at > next:
			case at < next:
				next, due = at, []func(){happen}
			default:
				due = append(due, happen)
			}
		}
		for _, l := range m.locks {
			for _, h := range l.holders {
				consider(h.expires, func() {
					m.seen["an expiry"] = true
					m.freeNamed(l, h)
				})
			}
			for _, p := range l.queue {
				for _, q := range p.requests {
					consider(q.deadline, func() {
						m.seen["a time-out"] = true
						m.leave(q.call, &answer{})
					})
				}
			}
		}
		m.now = next
		switch {
		case len(due) == 0:
			return true
		case len(due) > 1 || next == end:
			return false
		}
		due[0]()
	}
}

// TestPlansReachWhatTheModelKnows guards against plans that say little.
func TestPlansReachWhatTheModelKnows(t *testing.T) {
	seen := make(map[string]bool)
	for seed := range 200 {
		plan := plans.Example(seed)
		synctest.Test(t, func(t *testing.T) {
			m, err := follow(plan)
			if err != nil && !errors.Is(err, errTie) {
				t.Error(err)
			}
			maps.Copy(seen, m.seen)
		})
	}
	for _, what := range []string{
		"a handover", "a shared grant", "a shared place, when somebody leaves", "a repeat", "a renewal", "an expiry",
		"a time-out", "a withdrawal", "a limit reached", "a refusal to wait", "a reset of a queue", "a lock forgotten",
		"a give-back from an era before", "a give-back of a grant that ended",
		"a give-back of one answer of several", "a give-back of the last answer",
	} {
		if !seen[what] {
			t.Errorf("no plan has %s", what)
		}
	}
}
