package replicated

import (
	"context"
	"time"
)

// contended notes that others use the lock, too.
func (c *committer) contended() {
	c.followEnd = time.Now().Add(followFor)
	c.follow()
}

// follow begins to follow the record, if that is not so already.
func (c *committer) follow() {
	now := time.Now()
	if c.core.waiting() {
		c.followEnd = now.Add(followFor)
		if c.checkAt.IsZero() {
			c.checkAt = now.Add(c.b.untilReread())
		}
	}
	if c.unfollow != nil {
		return
	}
	ctx, cancel := context.WithCancel(c.b.ctx)
	c.unfollow = cancel
	c.b.followed.Add(1)
	begun := false
	c.b.store.Follow(ctx, c.key, func(e Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if e.Missed {
			if begun {
				c.b.meters.gaps.Add(ctx, 1, c.b.meters.backend)
			}
			begun = true
			c.reread = c.core.waiting() || c.core.flight != nil // which may queue somebody
		} else {
			_ = c.core.learn(e.Entry, false)
		}
		c.kick()
	})
}

// untilReread is how long to wait, though nothing was heard, before a record is
// read again.
func (b *Backend) untilReread() time.Duration {
	d := max(rereadEvery, time.Duration(b.followed.Load())*rereadPace)
	return d/2 + anyUpTo(d/2)
}

func (c *committer) stopFollowing() {
	if c.unfollow != nil {
		c.unfollow()
		c.unfollow = nil
		c.b.followed.Add(-1)
	}
}
