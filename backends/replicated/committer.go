package replicated

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
)

// committer carries out what the core of one lock decides. While there is
// something to do one goroutine runs it, and one swap at most is in flight;
// what arrives meanwhile goes with the next one. A lock that only waits, or is
// idle, has no goroutine: news and timers start one.
//
// Lock order: a shard's mutex before a committer's; nothing is locked while a
// committer's mutex is held, but the backend's leaf mutexes.
type committer struct {
	b     *Backend
	shard *shard
	key   string // of the store

	users  int  // operations under way; the shard's mutex guards it
	parked bool // seen without users by the last tidying; the shard's mutex guards it

	mu      sync.Mutex // guards all below
	core    *core
	session Session // of core.session
	epoch   uint64  // of the store, when core.rec was learnt
	running bool    // the goroutine of run is alive

	// nudge ends the linger and the pauses of run early. It has room for one.
	nudge chan struct{}

	oldest   time.Time  // when the oldest pending request came, at the latest
	inFlight Session    // of the swap in flight
	late     []*request // granted, and not told before their keys' time is started over
	resting  []chan struct{}

	unfollow  context.CancelFunc // nil: the record is not followed
	followEnd time.Time
	reported  bool      // that the record cannot be read
	reread    bool      // something may have been missed
	checkAt   time.Time // when to read again, though nothing was heard
	timer     *time.Timer

	expiries map[uint64]expiry // of the record's keys
	stall    stall
	askedAt  time.Time // for the oldest sessions; see crowded
	queuedAt time.Time // when it asked for those in the queue; see doubtsQueue
	refusals int       // of swaps, in a row
}

// expiry is what is known of a key that expires.
type expiry struct {
	until   time.Time // it lives at least until then
	lookAt  time.Time // when it may be gone
	expired bool
}

const (
	// followFor is how long a contended lock is followed after it was used: a
	// release that starts from an old record pays for a second swap.
	followFor = 10 * time.Second

	// rereadEvery is how often a record is read while requests wait, since
	// events can be lost; half of it to all of it, at random. Where very many
	// records are followed each is read less often, so that all of them
	// together cost the store about 1,000 reads a second at most.
	rereadEvery = 2 * time.Second
	rereadPace  = time.Millisecond

	// maxLinger bounds how long new waiters gather before they join the queue.
	maxLinger = 5 * time.Millisecond

	// keyPoll is how often a key that should have expired is looked at.
	keyPoll = 100 * time.Millisecond
)

// submit hands a request over. It reports whether the gateway has a session.
func (c *committer) submit(r *request) bool {
	r.done = func() {
		c.estimate(&r.answer)
		if r.traced != nil {
			r.traced.phase.End()
		}
		if r.key.ID == 0 || !r.answer.acquired.Acquired || c.granted(r) {
			r.deliver()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.core.pending) == 0 {
		c.oldest = time.Now()
	}
	c.core.add(r)
	c.kick()
	return c.session != nil
}

// kick makes sure that run looks at the core again. c.mu is held.
func (c *committer) kick() {
	if c.running {
		select {
		case c.nudge <- struct{}{}:
		default:
		}
		return
	}
	if !c.core.idle() && c.b.start(c.run) {
		c.running = true
		return
	}
	c.arm()
}

// run does what the core wants until it wants nothing. It is started by kick
// and ends by itself, or when the backend is closed.
func (c *committer) run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.b.ctx.Err() == nil {
		c.letDiscardsGo()
		c.checkEpoch()
		if len(c.late) > 0 {
			c.restartKeys()
			continue
		}
		if c.core.flight != nil {
			c.settle()
			continue
		}
		if c.due() {
			c.look()
			continue
		}
		if c.crowded() {
			c.askOldest()
			continue
		}
		if c.doubtsQueue() {
			c.askQueue()
			continue
		}
		if c.lingers() {
			continue
		}
		s := c.core.plan(c.world())
		switch s.kind {
		case again:
		case readRecord:
			c.read(s.requests)
		case lookAtKeys:
			c.lookAtKeys(s.keys, s.requests)
		case prepareKeys:
			c.prepareKeys(s.requests)
		case sendSwap:
			c.send()
		default:
			c.stopped()
			return
		}
	}
	c.stopped()
}

// checkEpoch forgets what is known of a store that turned out to be another.
func (c *committer) checkEpoch() {
	if e := c.b.store.Epoch(); e != c.epoch {
		c.epoch = e
		c.b.noteEpoch(e)
		f := c.core.flight
		c.core.forgetEpoch()
		c.noteSettled(f)
	}
}

// stopped is the end of run.
func (c *committer) stopped() {
	c.running = false
	for _, rest := range c.resting {
		close(rest)
	}
	c.resting = nil
	c.arm()
}

// arm sets the timer for what must happen without news, while run does not run.
func (c *committer) arm() {
	c.letDiscardsGo()
	c.reportRecord()
	var at time.Time
	soonest := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if c.core.waiting() {
		c.follow()
		soonest(c.checkAt)
		if t, ok := c.nextExpiry(); ok {
			soonest(t)
		}
	} else if c.unfollow != nil {
		soonest(c.followEnd)
	}
	switch {
	case at.IsZero() || c.b.ctx.Err() != nil:
	case c.timer == nil:
		c.timer = time.AfterFunc(time.Until(at), c.timeUp)
	default:
		c.timer.Reset(time.Until(at))
	}
}

// timeUp is the timer's goroutine.
func (c *committer) timeUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return
	}
	if !c.core.waiting() && c.unfollow != nil && !time.Now().Before(c.followEnd) {
		c.stopFollowing()
	}
	c.kick()
}

// reportRecord tells the log, once, that the record cannot be read.
func (c *committer) reportRecord() {
	if broken := c.core.broken != nil; broken != c.reported {
		c.reported = broken
		if broken {
			c.b.logger().Error("a lock record in the store cannot be read; the lock is answered 503, and the record left as it is", zap.Error(c.core.broken))
		}
	}
}

func (c *committer) letDiscardsGo() {
	if ids := c.core.discards; len(ids) > 0 {
		c.core.discards = nil
		c.b.store.Discard(ids...)
	}
}

// world is what the core's decisions depend on now.
func (c *committer) world() world {
	return world{
		number: c.b.batches.Add(1),
		random: rand.Uint64(), //nolint:gosec // Not a secret.
		now:    time.Now().UnixMilli(),
		ended:  c.ended,
		life:   c.life,
		tooOld: tooOld,
	}
}

func (c *committer) ended(s SessionID) bool {
	if c.session != nil && c.session.ID() == s {
		select {
		case <-c.session.Done(): // known to the store, and on its way to us
			return true
		default:
		}
	}
	return c.b.gateways.hasEnded(s) || c.stall.pruned == s && s != 0
}

func (c *committer) life(key uint64) life {
	e, ok := c.expiries[key]
	switch {
	case e.expired:
		return expired
	case ok && time.Now().Before(e.until):
		return alive
	}
	return unknownLife
}

// lingers waits a moment for more waiters, if there is nothing to do but to put
// some at the end of a queue: the longest moment if others of this gateway's
// wait there already, since those come first. It reports whether it did, and so
// whether there may be something new.
func (c *committer) lingers() bool {
	if !c.core.onlyJoins() {
		return false
	}
	linger := min(3*c.b.pace.swap(), maxLinger)
	if c.core.waiting() {
		linger = maxLinger
	}
	left := linger - time.Since(c.oldest)
	if left <= 0 {
		return false
	}
	c.pause(left, c.nudge)
	return true
}

// pause lets go of the mutex for a while, or until there is news.
func (c *committer) pause(d time.Duration, news <-chan struct{}) {
	c.mu.Unlock()
	defer c.mu.Lock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-news:
	case <-c.b.ctx.Done():
	}
}

// setSession tells the lock which session the gateway has now: nil if there is
// none. Waiters of an ended one are answered; those whose swap is in flight
// get some more time.
func (c *committer) setSession(next Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := SessionID(0)
	if next != nil {
		id = next.ID()
	}
	if c.core.session != id {
		c.session = next
		c.core.setSession(id)
		c.kick()
	}
}

// sessionsChanged tells the lock that more sessions are known to have ended.
func (c *committer) sessionsChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core.waiting() {
		c.kick()
	}
}
