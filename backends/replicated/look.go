package replicated

import (
	"context"
	"time"
)

// What a gateway looks after by itself while requests wait, since no event
// tells it, or the event may have been lost: the record, the sessions in its
// way, and keys that expire.

// due reports whether something is to be looked at.
func (c *committer) due() bool {
	if !c.core.waiting() {
		c.reread, c.checkAt = false, time.Time{}
		return false
	}
	now := time.Now()
	return c.reread || !c.checkAt.IsZero() && !now.Before(c.checkAt) || len(c.dueKeys(now)) > 0
}

// look looks at what is due.
func (c *committer) look() {
	now := time.Now()
	check := !c.checkAt.IsZero() && !now.Before(c.checkAt)
	if check || c.reread {
		c.reread = false
		c.checkAt = now.Add(c.b.untilReread())
		if check {
			c.b.meters.rereads.Add(c.b.ctx, 1, c.b.meters.backend)
		}
		c.read(nil)
	}
	if check {
		c.checkSessions(now)
	}
	if keys := c.dueKeys(now); len(keys) > 0 {
		c.lookAtKeys(keys, nil)
	}
}

// checkSessions asks whether the sessions whose tickets are entitled to a free
// slot, and do not take it, have ended.
func (c *committer) checkSessions(now time.Time) {
	for _, s := range c.core.inTheWay() {
		if c.ended(s) {
			continue
		}
		if c.ask(s) != nil {
			return
		}
	}
	if c.core.rec != nil {
		c.stall.see(c.core, now, 2*c.b.store.SessionTTL())
	}
}

// crowded reports whether the record has the batch numbers of so many sessions
// that it is time to find out which have ended: those before this gateway
// started raise no event.
func (c *committer) crowded() bool {
	return c.core.rec != nil && len(c.core.rec.batches) >= keptBatches && time.Since(c.askedAt) > time.Minute
}

// doubtsQueue reports whether it is time to find out which of the sessions in the
// queue have ended, since somebody asks: no event tells of those that ended
// before this gateway started, or on a store without such events.
func (c *committer) doubtsQueue() bool {
	return c.core.rec != nil && len(c.core.rec.queue) > 0 && len(c.core.pending) > 0 && time.Since(c.queuedAt) > rereadEvery
}

// askQueue asks for the sessions in the queue, as far as they are few.
func (c *committer) askQueue() {
	c.queuedAt = time.Now()
	var sessions []SessionID
	for i := range c.core.rec.queue {
		if t := &c.core.rec.queue[i]; !t.named() {
			sessions = addSession(sessions, t.session)
		} else {
			for _, s := range t.waits {
				sessions = addSession(sessions, s)
			}
		}
		if len(sessions) >= keptBatches {
			break
		}
	}
	for _, s := range sessions {
		if s != c.core.session && !c.ended(s) && c.ask(s) != nil {
			return
		}
	}
}

// askOldest asks for the oldest sessions in the record.
func (c *committer) askOldest() {
	c.askedAt = time.Now()
	for _, b := range c.core.rec.batches[:keptBatches/2] {
		if b.session != c.core.session && !c.ended(b.session) && c.ask(b.session) != nil {
			return
		}
	}
}

// ask finds out whether a session has ended.
func (c *committer) ask(s SessionID) error {
	return c.call(func(ctx context.Context) error {
		over, err := c.b.store.SessionEnded(ctx, s)
		if over && err == nil {
			c.b.gateways.noteEnded(s) // locks other committers, and this one
		}
		return err
	})
}

// stall finds a gateway that lives, as far as its session tells, and does not
// take what it is entitled to: its run is pruned once nothing about it has
// changed for two session times.
type stall struct {
	session SessionID // of the first entitled run of others
	run     uint64
	count   int64
	batch   uint64
	since   time.Time
	pruned  SessionID
}

// see notes what a read has just shown.
func (s *stall) see(c *core, now time.Time, patience time.Duration) {
	t := c.firstInTheWay()
	if t == nil {
		*s = stall{}
		return
	}
	session := t.session
	if t.named() {
		session = t.waits[0]
	}
	seen := stall{session: session, run: t.run, count: t.count, batch: c.rec.batchOf(session)}
	if s.session != seen.session || s.run != seen.run || s.count != seen.count || s.batch != seen.batch {
		*s = seen
		s.since = now
		return
	}
	if now.Sub(s.since) >= patience {
		s.pruned = session
	}
}

// inTheWay returns the other sessions that are entitled to free slots.
func (c *core) inTheWay() []SessionID {
	var list []SessionID
	c.entitled(func(t *ticket) bool {
		if t.named() {
			for _, s := range t.waits {
				list = addSession(list, s)
			}
		} else {
			list = addSession(list, t.session)
		}
		return true
	})
	return dropSession(list, c.session)
}

// firstInTheWay returns the first ticket of others that is entitled to a free
// slot, or nil.
func (c *core) firstInTheWay() (first *ticket) {
	c.entitled(func(t *ticket) bool {
		if !t.of(c.session) {
			first = t
		}
		return first == nil
	})
	return first
}

// hasClaim reports whether a ticket of this gateway's is entitled to a free slot.
func (c *core) hasClaim() (found bool) {
	c.entitled(func(t *ticket) bool {
		found = t.of(c.session)
		return !found
	})
	return found
}

// entitled calls f with the tickets that free slots belong to, until f returns
// false.
func (c *core) entitled(f func(t *ticket) bool) {
	if c.rec == nil {
		return
	}
	free := c.max - c.rec.held()
	for i := range c.rec.queue {
		t := &c.rec.queue[i]
		if free <= 0 || !f(t) {
			return
		}
		free -= t.places()
	}
}
