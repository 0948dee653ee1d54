package replicated

import "slices"

// naiveLock is what a lock is, as plainly as can be: a list of slots and a list
// of places, with every waiter by itself. It knows gateways only as names of
// those who ask.
type naiveLock struct {
	max   int64
	fresh bool
	era   int // counts resets, and the times that the last anonymous slot went
	slots []*naiveSlot
	queue []*naivePlace
}

type naiveSlot struct {
	name    string // empty: anonymous
	answers int
	waits   []*naiveWait // shared the place, and were not answered yet
}

type naivePlace struct {
	name  string
	waits []*naiveWait // one, unless it has a name
}

// naiveWait is an acquire and what becomes of it.
type naiveWait struct {
	session SessionID
	name    string
	run     uint64 // its place in the record, in histories of transitions
	state   naiveState
	value   int64 // granted: the number of slots then
	era     int   // granted: the lock's
	slot    *naiveSlot
}

type naiveState string

const (
	naiveWaiting naiveState = "waiting"
	naiveGranted naiveState = "granted"
	naiveRefused naiveState = "refused" // it is certain that it got nothing
	naiveLost    naiveState = "lost"    // with its session
)

func (l *naiveLock) held() int64 { return int64(len(l.slots)) }

func (l *naiveLock) anonymous() int64 {
	n := int64(0)
	for _, s := range l.slots {
		if s.name == "" {
			n++
		}
	}
	return n
}

func (l *naiveLock) slot(name string) *naiveSlot {
	i := slices.IndexFunc(l.slots, func(s *naiveSlot) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return l.slots[i]
}

func (l *naiveLock) place(name string) *naivePlace {
	i := slices.IndexFunc(l.queue, func(p *naivePlace) bool { return p.name == name })
	if name == "" || i < 0 {
		return nil
	}
	return l.queue[i]
}

// room is how many newcomers need not wait.
func (l *naiveLock) room() int64 { return l.max - l.held() - int64(len(l.queue)) }

// enqueue makes w wait at the end, or with the others of its name, or answers
// it with the slot of its name.
func (l *naiveLock) enqueue(w *naiveWait) {
	w.state = naiveWaiting
	switch {
	case w.name != "" && l.slot(w.name) != nil:
		l.grant(w, l.slot(w.name))
	case l.place(w.name) != nil:
		p := l.place(w.name)
		p.waits = append(p.waits, w)
	default:
		l.queue = append(l.queue, &naivePlace{name: w.name, waits: []*naiveWait{w}})
	}
}

func (l *naiveLock) grant(w *naiveWait, s *naiveSlot) {
	s.answers++
	w.state, w.value, w.era, w.slot = naiveGranted, l.held(), l.era, s
}

// claim gives a session what it is entitled to: of the free slots, those that
// fall to its places among the first.
func (l *naiveLock) claim(session SessionID) {
	own := func(w *naiveWait) bool { return w.session == session }
	free := int(l.max - l.held())
	entitled := slices.Clone(l.queue[:min(free, len(l.queue))])
	for _, p := range entitled {
		if !slices.ContainsFunc(p.waits, own) {
			continue
		}
		l.queue = slices.DeleteFunc(l.queue, func(other *naivePlace) bool { return other == p })
		l.fresh = false
		s := &naiveSlot{name: p.name}
		l.slots = append(l.slots, s)
		for _, w := range p.waits {
			if own(w) {
				l.grant(w, s)
			} else {
				s.waits = append(s.waits, w)
			}
		}
	}
}

// answerShared answers those of a session whose shared place was granted to
// another.
func (l *naiveLock) answerShared(session SessionID) {
	for _, s := range l.slots {
		for _, w := range s.waits {
			if w.session == session {
				l.grant(w, s)
			}
		}
		s.waits = slices.DeleteFunc(s.waits, func(w *naiveWait) bool { return w.session == session })
	}
}

// cancel takes a waiter out of the queue.
func (l *naiveLock) cancel(w *naiveWait, state naiveState) {
	if w.state != naiveWaiting {
		return
	}
	w.state = state
	is := func(other *naiveWait) bool { return other == w }
	for _, p := range l.queue {
		p.waits = slices.DeleteFunc(p.waits, is)
	}
	l.queue = slices.DeleteFunc(l.queue, func(p *naivePlace) bool { return len(p.waits) == 0 })
	for _, s := range l.slots {
		s.waits = slices.DeleteFunc(s.waits, is)
	}
}

// free takes a slot away, and reports whether there is one of that name.
func (l *naiveLock) free(name string) *naiveSlot {
	s := l.slot(name)
	if s == nil {
		return nil
	}
	l.slots = slices.DeleteFunc(l.slots, func(other *naiveSlot) bool { return other == s })
	if name == "" && l.anonymous() == 0 {
		l.era++
	}
	return s
}

func (l *naiveLock) release(name string) bool {
	var withdrawn []*naiveWait
	if p := l.place(name); p != nil {
		withdrawn = slices.Clone(p.waits)
	}
	s := l.free(name)
	if s != nil {
		withdrawn = append(withdrawn, s.waits...)
	}
	for _, w := range withdrawn {
		l.cancel(w, naiveRefused)
		w.state = naiveRefused
	}
	return s != nil
}

// giveBack undoes one answer, and reports whether there was anything to undo.
func (l *naiveLock) giveBack(w *naiveWait) bool {
	if w.name == "" {
		return w.era == l.era && l.free("") != nil
	}
	if l.slot(w.name) != w.slot {
		return false
	}
	if w.slot.answers--; w.slot.answers == 0 {
		l.passOn(w.slot)
	}
	return true
}

func (l *naiveLock) expire(name string) { l.passOn(l.slot(name)) }

// passOn ends a slot; the place belongs to those who shared it.
func (l *naiveLock) passOn(s *naiveSlot) {
	l.free(s.name)
	if len(s.waits) > 0 {
		l.queue = slices.Insert(l.queue, 0, &naivePlace{name: s.name, waits: s.waits})
	}
}

func (l *naiveLock) reset() {
	for _, p := range l.queue {
		for _, w := range p.waits {
			w.state = naiveRefused
		}
	}
	for _, s := range l.slots {
		for _, w := range s.waits {
			w.state = naiveRefused
		}
	}
	l.slots, l.queue, l.fresh = nil, nil, true
	l.era++
}

// waiters lists all that wait.
func (l *naiveLock) waiters() []*naiveWait {
	var list []*naiveWait
	for _, p := range l.queue {
		list = append(list, p.waits...)
	}
	for _, s := range l.slots {
		list = append(list, s.waits...)
	}
	return list
}
