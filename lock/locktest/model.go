package locktest

import "github.com/anishathalye/porcupine"

// action is an operation of the model.
type action string

const (
	doTry        action = "try"            // an acquire without a wait
	doEnter      action = "enter"          // an acquire with one: takes a slot or a place
	doGrant      action = "granted"        // it is told that it has the slot
	doGiveUp     action = "not acquired"   // it is told that it has none: time-out, reset or withdrawal
	mayEnter     action = "may enter"      // an acquire that was cancelled may have entered,
	mayBeGranted action = "may be granted" // and been granted,
	doLeave      action = "leave"          // and then left the queue, or gave its slot back
	doRelease    action = "release"
	doValue      action = "value"
	doReset      action = "reset"
)

type input struct {
	action action
	client int
	named  bool // an acquire in the client's own name
	holder int  // of a release: a client, or -1
}

type output struct {
	ok      bool
	value   int64
	token   uint64
	waiting int64
}

// phase is where a client's acquire stands.
type phase uint8

const (
	idle     phase = iota
	queued         // it has a place
	resolved       // it lost its place to a reset or a withdrawal
	granted        // it has a slot, and will be told or give it back
)

// state is that of the semaphore with its queue. It has one value for each
// client, since a client does one thing at a time, and is comparable.
type state struct {
	used      bool // acquired since the beginning or the last reset
	anonymous int64
	holds     [historyClients]bool   // a slot in the client's own name
	answers   [historyClients]int    // how many acquires returned that slot
	tokens    [historyClients]uint64 // its token, if anybody was told
	lastToken uint64

	queue  [historyClients]int // clients in arrival order
	length int

	phases [historyClients]phase
	named  [historyClients]bool  // whether the acquire under way is
	values [historyClients]int64 // what a granted one is to be told
	own    [historyClients]bool  // whether the slot it got without a name can still be there
}

// semaphoreModel is a counting semaphore with named holders and a queue, as the
// contract describes it.
func semaphoreModel(maxValue int64) porcupine.Model {
	step := func(from, in, o any) []any {
		var next []any
		for _, st := range from.(state).step(in.(input), o.(output), maxValue) {
			next = append(next, st)
		}
		return next
	}
	m := porcupine.NondeterministicModel{Init: func() []any { return []any{state{}} }, Step: step}
	return m.ToModel()
}

// step returns the states that an operation may lead to; none if it could not
// have had that outcome.
func (s state) step(in input, out output, maxValue int64) []state {
	c := in.client
	switch in.action {
	case doTry, doEnter, mayEnter:
		if s.phases[c] != idle {
			return nil // the client's acquire before has not ended yet
		}
	}
	free := maxValue - s.held()
	atOnce := in.named && s.holds[c] || s.length == 0 && free > 0
	switch in.action {
	case doTry:
		if !atOnce && !out.ok {
			return []state{s}
		}
		if !atOnce || !out.ok || !s.take(in, out) {
			return nil
		}
		return s.told(c, out)
	case doEnter:
		if !s.enter(in, out, atOnce) {
			return nil
		}
		return []state{s}
	case mayEnter:
		stayedOut := s
		if !s.enter(in, out, atOnce) {
			return []state{stayedOut}
		}
		return []state{stayedOut, s}
	case doGrant:
		if s.phases[c] == queued && !s.claim(in, out, free) {
			return nil
		}
		return s.told(c, out)
	case mayBeGranted:
		waited := s
		if s.phases[c] != queued || !s.claim(in, out, free) {
			return []state{waited}
		}
		return []state{waited, s}
	case doGiveUp:
		if s.phases[c] == queued {
			s.leave(c)
		} else if s.phases[c] != resolved {
			return nil
		}
		s.phases[c] = idle
		return []state{s}
	case doLeave:
		switch s.phases[c] {
		case queued:
			s.leave(c)
		case granted:
			s.giveBack(c)
		}
		s.phases[c] = idle
		return []state{s}
	case doRelease:
		return s.release(in.holder, out.ok)
	case doValue:
		if out.ok != s.used || out.value != s.held() || out.waiting != int64(s.length) {
			return nil
		}
		return []state{s}
	case doReset:
		for s.length > 0 {
			s.resolve(s.queue[0])
		}
		s.used, s.anonymous = false, 0
		s.holds, s.own = [historyClients]bool{}, [historyClients]bool{}
		return []state{s}
	}
	return nil
}

func (s *state) held() int64 {
	n := s.anonymous
	for _, holds := range s.holds {
		if holds {
			n++
		}
	}
	return n
}

// enter gives an acquire a slot if it is to have one at once, else a place.
func (s *state) enter(in input, out output, atOnce bool) bool {
	if atOnce {
		return s.take(in, out)
	}
	s.phases[in.client], s.named[in.client] = queued, in.named
	s.queue[s.length] = in.client
	s.length++
	return true
}

// claim gives a queued acquire its slot, if it is among those that the free
// slots belong to.
func (s *state) claim(in input, out output, free int64) bool {
	if s.place(in.client) >= free {
		return false
	}
	s.leave(in.client)
	return s.take(in, out)
}

// take gives a slot to a client, or answers a repeat. It reports false if the
// token that the client is told later cannot be that of this grant.
func (s *state) take(in input, out output) bool {
	c := in.client
	s.used = true
	s.phases[c], s.named[c] = granted, in.named
	switch {
	case !in.named:
		s.anonymous++
		s.own[c] = true
	case s.holds[c]:
		s.answers[c]++
		if out.ok && out.token != s.tokens[c] {
			return false
		}
	default:
		s.holds[c], s.answers[c], s.tokens[c] = true, 1, out.token
		if out.ok && out.token <= s.lastToken {
			return false
		}
		s.lastToken = max(s.lastToken, out.token)
	}
	s.values[c] = s.held()
	return true
}

// told ends a granted acquire with its answer.
func (s state) told(c int, out output) []state {
	if s.phases[c] != granted || out.value != s.values[c] || s.named[c] != (out.token != 0) {
		return nil
	}
	s.phases[c], s.own[c] = idle, false
	return []state{s}
}

// giveBack ends a granted acquire that nobody was told of.
func (s *state) giveBack(c int) {
	switch {
	case s.named[c]:
		if s.holds[c] {
			s.answers[c]--
			s.holds[c] = s.answers[c] > 0
		}
	case s.own[c]:
		s.own[c] = false
		s.freeAnonymous()
	}
}

func (s state) release(holder int, ok bool) []state {
	switch {
	case holder < 0:
		if ok != (s.anonymous > 0) {
			return nil
		}
		if ok {
			s.freeAnonymous()
		}
	default:
		if ok != s.holds[holder] {
			return nil
		}
		s.holds[holder] = false
		if s.phases[holder] == queued && s.named[holder] {
			s.resolve(holder)
		}
	}
	return []state{s}
}

// freeAnonymous lowers the count. When it gets to 0, no slot granted before can
// be there any more.
func (s *state) freeAnonymous() {
	if s.anonymous--; s.anonymous == 0 {
		s.own = [historyClients]bool{}
	}
}

func (s *state) resolve(c int) {
	s.leave(c)
	s.phases[c] = resolved
}

func (s *state) place(c int) int64 {
	for i, w := range s.queue[:s.length] {
		if w == c {
			return int64(i)
		}
	}
	return int64(s.length)
}

func (s *state) leave(c int) {
	i := int(s.place(c))
	copy(s.queue[i:], s.queue[i+1:s.length])
	s.length--
	s.queue[s.length] = 0
	s.phases[c] = idle
}
