package replicated

import "slices"

// The transitions of a record. They are pure: nothing here knows stores,
// clocks or requests. All but prune and numbered keep batches as they are.

// endEra begins a new era of the anonymous slots. An era ends with each reset
// and whenever the count falls to 0; a give-back of a grant of an ended era
// finds that its slot is gone.
func (r *record) endEra() { r.eras++ }

// takeAnonymous takes a slot for a request without a name.
func (r *record) takeAnonymous(now int64) {
	r.taken(now)
	r.anonymous++
}

// takeNamed takes a slot for a holder, whose token is index in the swap's
// revision. The returned pointer is good until the next change of holders.
func (r *record) takeNamed(name string, index uint64, now int64) *holder {
	r.taken(now)
	r.holders = append(r.holders, holder{name: name, index: index, since: now})
	return &r.holders[len(r.holders)-1]
}

func (r *record) taken(now int64) {
	if r.held() == 0 {
		r.busySince = now
	}
	r.fresh = false
}

func (r *record) freed() {
	if r.held() == 0 {
		r.busySince = 0
	}
}

// releaseAnonymous frees a slot without a name; it reports whether there was one.
func (r *record) releaseAnonymous() bool {
	if r.anonymous == 0 {
		return false
	}
	if r.anonymous--; r.anonymous == 0 {
		r.endEra()
	}
	r.freed()
	return true
}

// releaseNamed frees a holder's slot, and takes its place out of the queue. It
// reports whether it held a slot.
func (r *record) releaseNamed(name string) bool {
	if i := r.namedTicket(hashName(name)); i >= 0 {
		r.queue = slices.Delete(r.queue, i, i+1)
	}
	h := r.holder(name)
	if h == nil {
		return false
	}
	r.dropHolder(h)
	return true
}

func (r *record) dropHolder(h *holder) {
	i := slices.IndexFunc(r.holders, func(other holder) bool { return other.name == h.name })
	r.holders = slices.Delete(r.holders, i, i+1)
	r.freed()
}

// giveBackAnonymous frees the slot of a grant that nobody was told of, unless
// its era has ended: then whoever ended it has taken this slot along.
func (r *record) giveBackAnonymous(era uint64) bool {
	return r.era() == era && r.releaseAnonymous()
}

// giveBackNamed withdraws one answer of the grant with the given token. With
// the last one the slot is free; where others share the place, it is theirs at
// the head of the queue.
func (r *record) giveBackNamed(name string, token uint64) bool {
	h := r.holder(name)
	if h == nil || h.token != token {
		return false
	}
	if h.answers--; h.answers == 0 {
		r.returnPlace(h)
	}
	return true
}

// expire frees the slot of a holder whose key has expired.
func (r *record) expire(key uint64) bool {
	for i := range r.holders {
		if r.holders[i].expiring == key {
			r.returnPlace(&r.holders[i])
			return true
		}
	}
	return false
}

// returnPlace drops a holder, and gives the place to those who shared it.
func (r *record) returnPlace(h *holder) {
	name, waits, since := h.name, h.waits, h.since
	r.dropHolder(h)
	if len(waits) > 0 {
		t := ticket{since: since, hash: hashName(name), nameLength: len(name), waits: waits}
		r.queue = slices.Insert(r.queue, 0, t)
	}
}

// reset frees everything, empties the queue, and begins another generation.
func (r *record) reset() {
	r.resets++
	r.endEra()
	r.fresh = true
	r.anonymous, r.holders, r.queue, r.busySince = 0, nil, nil, 0
}

// enqueueRun adds a place for a request without a name at the end. It returns
// the run that the place is in: the last one, if it is the session's own.
func (r *record) enqueueRun(s SessionID, run uint64, since int64) uint64 {
	if r.endsWithRunOf(s) {
		last := &r.queue[len(r.queue)-1]
		last.count++
		return last.run
	}
	r.queue = append(r.queue, ticket{since: since, session: s, run: run, count: 1})
	return run
}

func (r *record) endsWithRunOf(s SessionID) bool {
	n := len(r.queue)
	return n > 0 && !r.queue[n-1].named() && r.queue[n-1].session == s
}

// enqueueNamed adds a place for a holder at the end, or joins the one it has.
func (r *record) enqueueNamed(s SessionID, name string, hash nameHash, since int64) {
	if i := r.namedTicket(hash); i >= 0 {
		r.queue[i].waits = addSession(r.queue[i].waits, s)
		return
	}
	r.queue = append(r.queue, ticket{since: since, hash: hash, nameLength: len(name), waits: []SessionID{s}})
}

// leaveRun takes places of a run out of the queue. Which of them leave is the
// gateway's business: the order inside a run is its own.
func (r *record) leaveRun(s SessionID, run uint64, places int64) {
	i := r.runTicket(s, run)
	if i < 0 {
		return
	}
	if r.queue[i].count -= places; r.queue[i].count <= 0 {
		r.queue = slices.Delete(r.queue, i, i+1)
	}
}

// leaveNamed ends a session's share in a named place, recorded or granted.
func (r *record) leaveNamed(s SessionID, hash nameHash, name string) {
	if i := r.namedTicket(hash); i >= 0 {
		t := &r.queue[i]
		if t.waits = dropSession(t.waits, s); len(t.waits) == 0 {
			r.queue = slices.Delete(r.queue, i, i+1)
		}
	}
	if h := r.holder(name); h != nil {
		h.waits = dropSession(h.waits, s)
	}
}

// prune takes the places of ended sessions out of the queue. Slots, and what
// identifies batches, stay. It reports whether anything changed.
func (r *record) prune(ended func(SessionID) bool) bool {
	changed := false
	prunes := func(s SessionID) bool {
		if !ended(s) {
			return false
		}
		changed = true
		if i := slices.IndexFunc(r.batches, func(b batch) bool { return b.session == s }); i >= 0 {
			r.batches[i].pruned = true
		}
		return true
	}
	r.queue = slices.DeleteFunc(r.queue, func(t ticket) bool { return !t.named() && prunes(t.session) })
	for i := range r.queue {
		r.queue[i].waits = slices.DeleteFunc(r.queue[i].waits, prunes)
	}
	r.queue = slices.DeleteFunc(r.queue, func(t ticket) bool { return t.named() && len(t.waits) == 0 })
	for i := range r.holders {
		r.holders[i].waits = slices.DeleteFunc(r.holders[i].waits, prunes)
	}
	return changed
}

// numbered notes the number of the swap that a session is about to make. Where
// there are too many sessions, ended ones are forgotten, the oldest first.
func (r *record) numbered(s SessionID, number uint64, ended func(SessionID) bool) {
	r.batches = slices.DeleteFunc(r.batches, func(b batch) bool { return b.session == s })
	for i := 0; i < len(r.batches) && len(r.batches) >= keptBatches; {
		if ended(r.batches[i].session) {
			r.batches = slices.Delete(r.batches, i, i+1)
		} else {
			i++
		}
	}
	r.batches = append(r.batches, batch{session: s, number: number})
}

func addSession(list []SessionID, s SessionID) []SessionID {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func dropSession(list []SessionID, s SessionID) []SessionID {
	return slices.DeleteFunc(list, func(other SessionID) bool { return other == s })
}
