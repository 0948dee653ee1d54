package etcd

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// session is a lease with a key, kept alive by a goroutine that ends when the
// session does.
type session struct {
	store *Store
	lease int64
	ttl   time.Duration
	key   []byte
	text  []byte // the description, which the key has

	// fence is the key's revision as far as it is known. Swaps that create a
	// record compare it.
	fence atomic.Int64

	finished sync.Once
	done     chan struct{}
}

// OpenSession grants a lease and puts the session's key on it.
func (s *Store) OpenSession(ctx context.Context, description string) (replicated.Session, error) {
	begun := time.Now()
	lease, ttl, err := s.grant(ctx, s.options.Load().SessionTTL)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	n := &session{store: s, lease: lease, ttl: ttl, key: s.keys.session(lease), text: []byte(description), done: make(chan struct{})}
	answer, err := s.commit(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{put(n.key, n.text, lease)}})
	if err != nil {
		s.Discard(uint64(lease))
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	n.fencedAt(answer.GetHeader().GetRevision())
	s.sessionTTL.Store(int64(ttl))
	if !s.run(func() { n.keepAlive(begun) }) { //nolint:contextcheck // The session outlives the call that opens it.
		return nil, errClosed
	}
	s.checkVersions() //nolint:contextcheck // It goes on in the background.
	return n, nil
}

// ID returns the lease's ID.
func (n *session) ID() replicated.SessionID { return replicated.SessionID(n.lease) }

// Done is closed when etcd has no such lease any more, when it was not heard
// that it had it for as long as the lease lives, and by End and Close.
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

// keepAlive renews the lease three times in its life, or more often if that
// fails. heard is when the last request was sent that was answered: from then on
// etcd counts at the earliest.
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
		ttl, err := n.store.renew(ctx, n.lease)
		cancel()
		switch {
		case n.ended():
			return
		case err == nil && ttl > 0:
			heard, next = sent, n.ttl/3
		case err == nil:
			n.store.logger().Info("etcd has ended the session of this gateway")
			return
		case time.Since(heard) >= n.ttl:
			n.store.logger().Info("etcd did not renew the session of this gateway in time", zap.Error(err))
			return
		default:
			next = repeatWait
		}
	}
}

// fencedAt remembers the greatest revision that the session's key was seen with.
func (n *session) fencedAt(revision int64) {
	for {
		before := n.fence.Load()
		if revision <= before || n.fence.CompareAndSwap(before, revision) {
			return
		}
	}
}

// Fence writes the session's key again. A swap that creates a record was sent
// with an earlier revision of it, and is refused from then on. If the answer is
// lost the key is written once more: whenever the first write is applied, it only
// raises the revision, of which refused swaps tell.
func (n *session) Fence(ctx context.Context) error {
	txn := &pb.TxnRequest{
		Compare: []*pb.Compare{exists(n.key)},
		Success: []*pb.RequestOp{put(n.key, n.text, n.lease)},
	}
	before := n.fence.Load()
	for {
		answer, err := n.store.commit(ctx, txn)
		switch {
		case err == nil && answer.GetSucceeded() && answer.GetHeader().GetRevision() > before:
			n.fencedAt(answer.GetHeader().GetRevision())
			return nil
		case err == nil || leaseGone(err):
			// Or the cluster was restored to an earlier state, in which the
			// session is another one.
			n.finish()
			return fmt.Errorf("fencing: %w", replicated.ErrSessionEnded)
		case refused(err, true) || !sleep(ctx, repeatWait):
			return fmt.Errorf("fencing: %w", err)
		}
	}
}

// End revokes the lease.
func (n *session) End(ctx context.Context) error {
	n.finish()
	return n.store.revoke(ctx, n.lease)
}

// SessionEnded reads whether the session has its key.
func (s *Store) SessionEnded(ctx context.Context, id replicated.SessionID) (bool, error) {
	answer, err := s.read(ctx, s.keys.session(int64(id)))
	if err != nil {
		return false, fmt.Errorf("looking for a session: %w", err)
	}
	return entry(answer, 0).Revision == 0, nil
}
