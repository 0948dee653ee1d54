package hostile

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// stream carries news from the cluster to one follower. The call that follows
// starts its goroutine, which ends with the context or the store.
type stream struct {
	store  *store
	key    string // of the record; empty for the ends of sessions
	notify func(replicated.Event)
	ended  func(replicated.SessionID)
	wake   chan struct{} // has capacity 1: there is more in the queue

	// The following is guarded by cluster.mu.
	dice  *rand.Rand
	from  time.Time // news before that are not seen
	queue []delivery
}

// delivery is one piece of news on its way.
type delivery struct {
	due  time.Time
	call func()
}

// Follow implements replicated.Store.
func (s *store) Follow(ctx context.Context, key string, notify func(replicated.Event)) {
	checkKey(key)
	s.follow(ctx, &stream{key: key, notify: notify})
}

// FollowSessions implements replicated.Store. Loose stores have no such events.
func (s *store) FollowSessions(ctx context.Context, ended func(replicated.SessionID)) {
	if s.cluster.kind == Strict {
		s.follow(ctx, &stream{ended: ended})
	}
}

func (s *store) follow(ctx context.Context, st *stream) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.ended {
		return
	}
	st.store = s
	st.wake = make(chan struct{}, 1)
	st.dice = rand.New(rand.NewPCG(s.dice.Uint64(), 0)) //nolint:gosec // Not a secret.
	c.streams[st] = true
	if !s.cut {
		st.resume()
	}
	s.streams.Go(func() { st.run(ctx) })
}

// resume begins to follow, now or a little later, and reports that changes were
// missed until then. The caller holds cluster.mu.
func (st *stream) resume() {
	st.from = time.Now().Add(upTo(st.dice, st.store.cluster.faults.EventDelay))
	st.queue = nil
	if st.notify != nil {
		st.add(st.from, st.missed)
	}
}

func (st *stream) missed() { st.notify(replicated.Event{Missed: true}) }

// announce tells the followers of a record how it is now. The caller holds
// c.mu.
func (c *Cluster) announce(key string) {
	for st := range c.streams {
		if st.key != key {
			continue
		}
		if r := c.records[key]; r == nil {
			st.push(st.missed)
		} else {
			st.push(func() { st.notify(replicated.Event{Entry: r.entry()}) })
		}
	}
}

// push sends a piece of news on its way. The caller holds cluster.mu.
func (st *stream) push(call func()) {
	c := st.store.cluster
	if st.store.cut || time.Now().Before(st.from) {
		return // resume reports the gap
	}
	copies := 1
	if c.befalls(st.dice.Float64(), c.faults.EventLoss) {
		copies = 0
	} else if c.befalls(st.dice.Float64(), c.faults.EventDouble) {
		copies = 2
	}
	if c.befalls(st.dice.Float64(), c.faults.EventGap) {
		if st.notify == nil {
			return // sessions' ends have no way to report a gap
		}
		call = st.missed
	}
	for range copies {
		st.add(time.Now().Add(upTo(st.dice, c.faults.EventDelay)), call)
	}
}

// add queues a piece of news. The caller holds cluster.mu.
func (st *stream) add(due time.Time, call func()) {
	st.queue = append(st.queue, delivery{due, call})
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// run delivers news when they are due.
func (st *stream) run(ctx context.Context) {
	defer st.leave()
	for {
		call, wait := st.next()
		if call != nil && ctx.Err() == nil {
			call()
			continue
		}
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-due:
		case <-st.wake:
		case <-ctx.Done():
			return
		case <-st.store.closed:
			return
		}
	}
}

// next takes the news that are due first, or says how long that will be; zero:
// until add wakes the goroutine.
func (st *stream) next() (call func(), wait time.Duration) {
	c := st.store.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(st.queue) == 0 || st.store.ended {
		return nil, 0
	}
	i := 0
	for j, d := range st.queue {
		if d.due.Before(st.queue[i].due) {
			i = j
		}
	}
	if wait := time.Until(st.queue[i].due); wait > 0 {
		return nil, wait
	}
	call = st.queue[i].call
	st.queue = slices.Delete(st.queue, i, i+1)
	st.store.learn()
	return call, 0
}

// leave ends the following.
func (st *stream) leave() {
	c := st.store.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, st)
}
