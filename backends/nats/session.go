package nats

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// session is a key that expires, refreshed by a goroutine that ends when the
// session does.
type session struct {
	store *Store
	id    uint64
	key   string
	text  []byte // the description, which the key has
	ttl   time.Duration

	sequence uint64 // the key's, as far as it is known; the goroutine's own

	finished sync.Once
	done     chan struct{}
}

// newID returns an identity that nothing had before.
func newID() uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // it never fails
		if id := binary.BigEndian.Uint64(b[:]); id != 0 {
			return id
		}
	}
}

// OpenSession puts the session's key.
func (s *Store) OpenSession(ctx context.Context, description string) (replicated.Session, error) {
	id := newID()
	n := &session{store: s, id: id, key: s.keys.session(id), text: []byte(description), ttl: s.SessionTTL(), done: make(chan struct{})}
	begun := time.Now()
	var err error
	if n.sequence, err = n.put(ctx, 0); err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	if !s.run(func() { n.keepAlive(begun) }) { //nolint:contextcheck // The session outlives the call that opens it.
		return nil, errClosed
	}
	return n, nil
}

// put writes the key, if it has not been written since. To each server it lives as
// long as the session, even if their clocks differ.
func (n *session) put(ctx context.Context, last uint64) (sequence uint64, err error) {
	return n.store.publish(ctx, message(n.key, n.text, lastIs(last), seconds(n.ttl+clockSkew)))
}

// ID returns what the key is called.
func (n *session) ID() replicated.SessionID { return replicated.SessionID(n.id) }

// Done is closed when the key is gone, when no refresh was heard of for as long as
// the session lives, and by End and Close.
func (n *session) Done() <-chan struct{} { return n.done }

func (n *session) finish() { n.finished.Do(func() { close(n.done) }) }

func (n *session) ended() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// keepAlive refreshes the key three times in its life, or more often if that fails.
// heard is when the last refresh was sent that was acknowledged: from then on the
// servers count at the earliest.
func (n *session) keepAlive(heard time.Time) {
	defer n.finish()
	for next := n.ttl / 3; ; {
		select {
		case <-time.After(min(next, time.Until(heard.Add(n.ttl)))):
		case <-n.done:
			return
		case <-n.store.ctx.Done():
			return
		}
		end := heard.Add(n.ttl)
		sent := time.Now()
		if limit := sent.Add(min(n.store.requestTimeout(), n.ttl/3)); limit.Before(end) {
			end = limit
		}
		ctx, cancel := context.WithDeadline(n.store.ctx, end)
		err := n.refresh(ctx)
		cancel()
		switch {
		case n.ended():
			return
		case err == nil:
			heard, next = sent, n.ttl/3
		case errors.Is(err, replicated.ErrSessionEnded):
			n.store.logger().Info("NATS has ended the session of this gateway")
			return
		case time.Since(heard) >= n.ttl:
			n.store.logger().Info("NATS did not take the signs of life of this gateway in time", zap.Error(err))
			return
		default:
			next = repeatWait
		}
	}
}

// refresh starts the key's time over. A refusal is met by a refresh of ours whose
// answer was lost, which is then built on, or by the end of the key. A key that is
// gone is never put again: others may have seen that it was. (A read that wrongly
// shows none ends the session too early; then its waiters are told that the store
// is not available.)
func (n *session) refresh(ctx context.Context) error {
	for {
		sequence, err := n.put(ctx, n.sequence)
		if err == nil {
			n.sequence = sequence
			return nil
		}
		if conflict, busy := conflicts(err); !conflict || busy {
			return err
		}
		found, err := n.store.last(ctx, n.key)
		switch {
		case err != nil:
			return err
		case !found.live():
			return replicated.ErrSessionEnded
		case found.sequence <= n.sequence: // an old read
			if !sleep(ctx, repeatWait) {
				return ctx.Err()
			}
		default:
			n.sequence = found.sequence
		}
	}
}

// Fence does nothing: JetStream compares the sequence of one key only. What is left
// open is a create that was in doubt, was then seen not to be there, and is applied
// all the same, later: it can, as long as the lock has no record, or again none. As
// records live ten minutes at least, it would have to be on its way for as long.
func (n *session) Fence(context.Context) error { return nil }

// End removes the key. A refresh that is still on its way is refused then, as it
// names an earlier sequence.
func (n *session) End(ctx context.Context) error {
	n.finish()
	for {
		_, err := n.store.publish(ctx, removal(n.key, nil))
		if err == nil {
			return nil
		}
		if refusedForGood := errors.Is(err, replicated.ErrNotApplied); refusedForGood || !sleep(ctx, repeatWait) {
			return fmt.Errorf("ending a session: %w", err)
		}
	}
}

// SessionEnded reads whether the session has its key. A leader that was deposed and
// does not know may show a key that is gone, which makes the end seem late; or none
// of a session that was opened since, which costs that session's waiters their
// places. Nothing else is decided by it.
func (s *Store) SessionEnded(ctx context.Context, id replicated.SessionID) (bool, error) {
	found, err := s.last(ctx, s.keys.session(uint64(id)))
	if err != nil {
		return false, fmt.Errorf("looking for a session: %w", err)
	}
	return !found.live(), nil
}

// FollowSessions tells nothing: that a key expires is no event. Who waits for one
// asks SessionEnded.
func (s *Store) FollowSessions(context.Context, func(replicated.SessionID)) {}
