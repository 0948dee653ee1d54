package replicated

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
)

// gateways keeps this gateway's session, and knows which of the others' have
// ended.
type gateways struct {
	b *Backend

	mu       sync.Mutex // guards all below
	session  Session    // nil: there is none now
	ended    map[SessionID]bool
	before   map[SessionID]bool // those that were in ended when it was full last
	lostOnes chan Session       // a session that a swap found ended
}

// keptEnded is how many ended sessions are known at least. A record that names
// an older one makes this gateway ask again.
const keptEnded = 1024

func newGateways(b *Backend) *gateways {
	return &gateways{b: b, ended: make(map[SessionID]bool), lostOnes: make(chan Session, 1)}
}

// run keeps a session open until the backend is closed. It is the backend's
// goroutine.
func (g *gateways) run() {
	ctx := g.b.ctx
	g.b.store.FollowSessions(ctx, g.noteEnded)
	reopened := false
	for ctx.Err() == nil {
		session := g.open(ctx)
		if session == nil {
			return
		}
		g.set(session)
		if reopened {
			g.b.logger().Info("there is a new session with the store; requests are queued again")
		}
		reopened = true
		if !g.watch(ctx, session) {
			return // Close ends the session, last
		}
		g.b.meters.sessions.Add(ctx, 1, g.b.meters.backend)
		g.b.logger().Warn("the session with the store has ended; waiters lost their places, a new session is started")
		g.set(nil)
	}
}

// open opens a session, however long it takes. It returns nil when ctx is done.
func (g *gateways) open(ctx context.Context) Session {
	pause := 50 * time.Millisecond
	for {
		attempt, cancel := context.WithTimeout(ctx, g.b.requestTimeout())
		session, err := g.b.store.OpenSession(attempt, describe())
		cancel()
		g.b.noteCall(err)
		if err == nil {
			return session
		}
		timer := time.NewTimer(pause/2 + anyUpTo(pause/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		pause = min(2*pause, time.Second)
	}
}

// watch waits until the session has ended. It returns false when ctx is done.
func (g *gateways) watch(ctx context.Context, session Session) bool {
	for {
		select {
		case <-session.Done():
			return true
		case other := <-g.lostOnes:
			if other.ID() == session.ID() {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

// lost notes that a swap found a session ended.
func (g *gateways) lost(session Session) {
	select {
	case g.lostOnes <- session:
	default: // run is about to see one; if that is not it, another swap finds it
	}
}

// set makes session the current one, and tells all locks.
func (g *gateways) set(session Session) {
	g.mu.Lock()
	last := g.session
	g.session = session
	g.mu.Unlock()
	if last != nil {
		g.noteEnded(last.ID())
	}
	g.b.eachCommitter(func(c *committer) { c.setSession(session) })
}

// current returns the session, or nil.
func (g *gateways) current() Session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.session
}

func (g *gateways) hasEnded(s SessionID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended[s] || g.before[s]
}

// noteEnded notes that a session has ended, and tells the locks that have
// waiters.
func (g *gateways) noteEnded(s SessionID) {
	g.mu.Lock()
	own := g.session != nil && g.session.ID() == s
	known := g.ended[s] || g.before[s]
	if !known {
		if len(g.ended) >= keptEnded {
			g.before, g.ended = g.ended, make(map[SessionID]bool)
		}
		g.ended[s] = true
	}
	session := g.session
	g.mu.Unlock()
	if own {
		g.lost(session)
	}
	if !known {
		g.b.eachCommitter((*committer).sessionsChanged)
	}
}

// end ends the session, so that others need not wait until it runs out.
func (g *gateways) end(ctx context.Context) {
	if session := g.current(); session != nil {
		if err := session.End(ctx); err != nil && !errors.Is(err, ErrSessionEnded) {
			g.b.logger().Warn("the session with the store could not be ended; it runs out by itself", zap.Error(err))
		}
	}
}
