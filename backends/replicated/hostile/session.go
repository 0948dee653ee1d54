package hostile

import (
	"context"
	"fmt"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// sessionTTL is how long a session lives after the cluster last heard of it.
// While a gateway is neither cut off nor closed, the cluster hears of it all
// the time.
const sessionTTL = time.Second

// session is one session. Its gateway and the cluster share it, since the only
// thing that one knows and the other does not is whether done is closed.
type session struct {
	store *store
	id    replicated.SessionID
	text  string // its description
	done  chan struct{}

	// The following is guarded by cluster.mu.
	kept  bool // the gateway keeps it alive, when it can
	told  bool // done is closed
	ended bool
	fence uint64
	out   *alarm // when it runs out; nil while the cluster hears of it
}

// OpenSession implements replicated.Store.
func (s *store) OpenSession(ctx context.Context, description string) (replicated.Session, error) {
	if len(description) > replicated.MaxDescriptionLength {
		panic("hostile: a description is too long")
	}
	c := s.cluster
	var n *session
	err := s.call(ctx, func(fate) error {
		n = &session{store: s, id: c.newSessionID(s), text: description, done: make(chan struct{}), kept: true}
		c.sessions[n.id] = n
		if s.cut || s.ended {
			c.runOut(n)
		}
		return nil
	})
	if err != nil {
		if n != nil { // nobody knows that it exists
			c.mu.Lock()
			c.abandon(n)
			c.mu.Unlock()
		}
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	return n, nil
}

// newSessionID draws an identity that no session had. The caller holds c.mu.
func (c *Cluster) newSessionID(s *store) replicated.SessionID {
	for {
		id := replicated.SessionID(s.dice.Uint64())
		if _, used := c.sessions[id]; id != 0 && !used {
			return id
		}
	}
}

// SessionTTL implements replicated.Store.
func (s *store) SessionTTL() time.Duration { return sessionTTL }

// SessionEnded implements replicated.Store.
func (s *store) SessionEnded(ctx context.Context, id replicated.SessionID) (ended bool, err error) {
	c := s.cluster
	err = s.call(ctx, func(f fate) error {
		n := c.sessions[id]
		ended = (n == nil || n.ended) != c.befalls(f.lie, c.faults.SessionLie)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("looking for session %x: %w", id, err)
	}
	return ended, nil
}

// Sessions implements replicated.Store. A lie leaves one out.
func (s *store) Sessions(ctx context.Context) (list []replicated.SessionInfo, err error) {
	c := s.cluster
	err = s.call(ctx, func(f fate) error {
		lie := c.befalls(f.lie, c.faults.SessionLie)
		for _, n := range c.sessions {
			switch {
			case n.ended:
			case lie:
				lie = false
			default:
				list = append(list, replicated.SessionInfo{ID: n.id, Description: n.text})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the sessions: %w", err)
	}
	return list, nil
}

// EndSessions ends the sessions of one gateway, which may learn of it later.
func (c *Cluster) EndSessions(of replicated.Store) {
	s := c.own(of)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.sessions {
		if n.store == s {
			c.end(n)
		}
	}
}

// runOut ends a session after its time. The caller holds c.mu.
func (c *Cluster) runOut(n *session) {
	if !n.ended && n.out == nil {
		n.out = c.after(sessionTTL+upTo(n.store.dice, c.faults.EndLate), func() { c.end(n) })
	}
}

// abandon lets a session run out that nobody keeps alive any more. The caller
// holds c.mu.
func (c *Cluster) abandon(n *session) {
	n.kept = false
	c.runOut(n)
}

// end ends a session. The caller holds c.mu.
func (c *Cluster) end(n *session) {
	if n.ended {
		return
	}
	n.ended = true
	c.stop(n.out)
	for st := range c.streams {
		if st.ended != nil {
			st.push(func() { st.ended(n.id) })
		}
	}
	if d := upTo(n.store.dice, c.faults.DoneLate); d > 0 {
		c.after(d, n.tell)
	} else {
		n.tell()
	}
}

// tell closes done. The caller holds cluster.mu.
func (n *session) tell() {
	if !n.told {
		n.told = true
		close(n.done)
	}
}

// ID implements replicated.Session.
func (n *session) ID() replicated.SessionID { return n.id }

// Done implements replicated.Session.
func (n *session) Done() <-chan struct{} { return n.done }

// Fence implements replicated.Session. Loose stores cannot do it.
func (n *session) Fence(ctx context.Context) error {
	if n.store.cluster.kind == Loose {
		return nil
	}
	err := n.store.call(ctx, func(fate) error {
		if n.ended {
			return replicated.ErrSessionEnded
		}
		n.fence++
		return nil
	})
	if err != nil {
		return fmt.Errorf("fencing session %x: %w", n.id, err)
	}
	return nil
}

// End implements replicated.Session.
func (n *session) End(ctx context.Context) error {
	c := n.store.cluster
	c.mu.Lock()
	n.tell()
	c.mu.Unlock()
	err := n.store.call(ctx, func(fate) error {
		c.end(n)
		return nil
	})
	if err != nil {
		c.mu.Lock()
		c.abandon(n)
		c.mu.Unlock()
		return fmt.Errorf("ending session %x: %w", n.id, err)
	}
	return nil
}
