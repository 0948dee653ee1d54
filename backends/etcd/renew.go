package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// renewals keeps leases alive, all through one stream: opening one costs a login
// where authentication is enabled. (The client's own KeepAliveOnce opens one each
// time, and tries without a pause while there is no leader.)
type renewals struct {
	turn chan struct{} // has room for one, who may send on the stream or replace it

	mu     sync.Mutex // guards stream
	stream *renewalStream
}

// renewalStream is a stream whose goroutine hands out the answers. It ends when
// the stream does.
type renewalStream struct {
	pb.Lease_LeaseKeepAliveClient
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows
	waiting []renewal  // in the order of their requests, which is that of the answers
	ended   error
}

type renewal struct {
	lease  int64
	answer chan<- renewed // has room for one
}

type renewed struct {
	ttl int64
	err error
}

// renew starts a lease's time over, and returns what it then has; 0 means that
// there is no such lease.
func (s *Store) renew(ctx context.Context, lease int64) (ttl time.Duration, err error) {
	err = s.call(ctx, func(ctx context.Context, c *clients) error {
		seconds, err := s.renewOnce(ctx, c, lease)
		ttl = time.Duration(max(0, seconds)) * time.Second
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("renewing a lease: %w", err)
	}
	return ttl, nil
}

func (s *Store) renewOnce(ctx context.Context, c *clients, lease int64) (int64, error) {
	stream, answer, err := s.sendRenewal(ctx, c, lease)
	if err != nil {
		return 0, err
	}
	select {
	case a := <-answer:
		return a.ttl, a.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			// The member may have stopped. The next stream is one to another.
			s.renewals.end(stream)
		}
		return 0, ctx.Err()
	}
}

func (s *Store) sendRenewal(ctx context.Context, c *clients, lease int64) (*renewalStream, <-chan renewed, error) {
	r := &s.renewals
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	stream := r.current()
	if stream == nil {
		var err error
		if stream, err = s.openRenewals(ctx, c); err != nil {
			return nil, nil, err
		}
	}
	answer := make(chan renewed, 1)
	stream.mu.Lock()
	stream.waiting = append(stream.waiting, renewal{lease: lease, answer: answer})
	ended := stream.ended
	stream.mu.Unlock()
	if ended != nil {
		return nil, nil, ended
	}
	// If it fails, the receiver is told why, and tells who waits.
	_ = stream.Send(&pb.LeaseKeepAliveRequest{ID: lease})
	return stream, answer, nil
}

// openRenewals opens the stream. Called in turn.
func (s *Store) openRenewals(ctx context.Context, c *clients) (*renewalStream, error) {
	streamCtx, cancel := context.WithCancel(clientv3.WithRequireLeader(s.ctx))
	giveUp := context.AfterFunc(ctx, cancel)
	remote, err := c.lease.LeaseKeepAlive(streamCtx, callOptions...) //nolint:contextcheck // The stream outlives the call that opens it.
	if err == nil && !giveUp() {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	stream := &renewalStream{Lease_LeaseKeepAliveClient: remote, cancel: cancel}
	if !s.run(func() { s.renewals.receive(stream) }) {
		cancel()
		return nil, errClosed
	}
	s.renewals.mu.Lock()
	s.renewals.stream = stream
	s.renewals.mu.Unlock()
	return stream, nil
}

// receive hands out answers until the stream ends.
func (r *renewals) receive(stream *renewalStream) {
	for {
		answer, err := stream.Recv()
		if err == nil {
			err = stream.handOut(answer)
		}
		if err != nil {
			r.end(stream)
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			stream.fail(err)
			return
		}
	}
}

func (s *renewalStream) handOut(answer *pb.LeaseKeepAliveResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.waiting[0].lease != answer.GetID() {
		return errors.New("an answer to no request of the stream for renewals")
	}
	s.waiting[0].answer <- renewed{ttl: answer.GetTTL()}
	s.waiting = s.waiting[1:]
	return nil
}

func (s *renewalStream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = err
	for _, w := range s.waiting {
		w.answer <- renewed{err: err}
	}
	s.waiting = nil
}

func (r *renewals) current() *renewalStream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stream
}

// end ends a stream, if it is one; the next renewal opens another.
func (r *renewals) end(stream *renewalStream) {
	if stream == nil {
		return
	}
	r.mu.Lock()
	if r.stream == stream {
		r.stream = nil
	}
	r.mu.Unlock()
	stream.cancel()
}
