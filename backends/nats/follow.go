package nats

import (
	"context"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// follower is told of changes of one lock.
type follower struct {
	ctx context.Context //nolint:containedctx // It says how long to follow.

	mu     sync.Mutex // held during calls of notify
	notify func(replicated.Event)

	// The feed's mu guards these.
	topic  *topic
	unbind func() bool // takes back that it ends with its context
}

func (f *follower) tell(e replicated.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() == nil {
		f.notify(e)
	}
}

// Follow subscribes to what the stream publishes again of one lock.
func (s *Store) Follow(ctx context.Context, key string, notify func(replicated.Event)) {
	s.feed.follow(s.keys.newsOf(s.keys.lock(key)), &follower{ctx: ctx, notify: notify})
}

// event is what a message that was published again means to a follower. Of one that
// has no record, or stands for a removal, the follower may as well read.
func event(m *nats.Msg) replicated.Event {
	sequence, err := strconv.ParseUint(m.Header.Get(headerSequence), 10, 64)
	if err != nil || m.Header.Get(headerOperation) != "" || m.Header.Get(headerSize) != "" {
		return replicated.Event{Missed: true}
	}
	return replicated.Event{Entry: replicated.Entry{Value: m.Data, Revision: sequence}}
}
