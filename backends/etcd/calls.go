package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
)

const (
	// repeatWait is how long to wait before a call is sent again, to another
	// member if there is one.
	repeatWait = 50 * time.Millisecond

	// tokenAttempts is how often a token may be refused for one call.
	tokenAttempts = 3
)

var errClosed = errors.New("etcd: the store is closed")

// clients returns those of the connection in force.
func (s *Store) clients(ctx context.Context) (*clients, error) {
	if s.ctx.Err() != nil {
		return nil, errClosed
	}
	return s.connection.Load().get(ctx)
}

// call sends a request that may be sent any number of times, until it succeeds,
// fails for good, or ctx is done.
func (s *Store) call(ctx context.Context, send func(context.Context, *clients) error) error {
	ctx = withTrace(clientv3.WithRequireLeader(ctx))
	for attempt := 1; ; attempt++ {
		c, err := s.clients(ctx)
		if err != nil {
			return err
		}
		if err = send(ctx, c); err == nil {
			return nil
		}
		again := !refused(err, true) || mayResend(err, attempt)
		if !again || !sleep(ctx, repeatWait) {
			return explain(err)
		}
	}
}

// commit sends a transaction that changes something. If it was refused for a
// reason that passes, and so certainly not applied, it is sent again; else it is
// sent once. The error wraps ErrNotApplied if it was not applied and never will
// be.
func (s *Store) commit(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	ctx = withTrace(clientv3.WithRequireLeader(ctx))
	for attempt := 1; ; attempt++ {
		c, err := s.clients(ctx)
		if err != nil {
			return nil, notApplied(err)
		}
		begun := s.history.begin()
		// When the call is over gRPC fills it in if it had a connection to go
		// out by. What it sends again by itself, a server did not look at.
		var to peer.Peer
		answer, err := c.kv.Txn(ctx, txn, append(callOptions, grpc.Peer(&to))...)
		if err == nil {
			if !s.history.check(begun, answer.GetHeader()) {
				return nil, errAnotherHistory
			}
			return answer, nil
		}
		sent := to.Addr != nil
		// The transaction that uses the quota up is applied, and answered with "no
		// space" (etcd's quotaApplierV3); those after it are not.
		if !refused(err, sent) || errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) {
			return nil, explain(err)
		}
		if !mayResend(err, attempt) || !sleep(ctx, repeatWait) {
			return nil, notApplied(explain(err))
		}
	}
}

// mayResend reports whether a request was refused, without being looked at, for
// a reason that may be over at the next attempt.
func mayResend(err error, attempt int) bool {
	return errors.Is(rpctypes.Error(err), rpctypes.ErrNoLeader) || tokenRefused(err) && attempt < tokenAttempts
}

// read sends a transaction of reads, which sees everything that was committed
// before.
func (s *Store) read(ctx context.Context, keys ...[]byte) (answer *pb.TxnResponse, err error) {
	txn := &pb.TxnRequest{}
	for _, key := range keys {
		txn.Success = append(txn.Success, get(key))
	}
	err = s.call(ctx, func(ctx context.Context, c *clients) error {
		begun := s.history.begin()
		if answer, err = c.kv.Txn(ctx, txn, callOptions...); err != nil {
			return err
		}
		s.history.check(begun, answer.GetHeader())
		return nil
	})
	return answer, err
}

// grant makes a lease of whole seconds, rounded up; etcd may grant more.
func (s *Store) grant(ctx context.Context, ttl time.Duration) (lease int64, granted time.Duration, err error) {
	seconds := int64((ttl + time.Second - 1) / time.Second)
	err = s.call(ctx, func(ctx context.Context, c *clients) error {
		answer, err := c.lease.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: seconds}, callOptions...)
		if err != nil {
			return err
		}
		lease, granted = answer.ID, time.Duration(answer.TTL)*time.Second
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("granting a lease: %w", err)
	}
	return lease, granted, nil
}

// revoke deletes a lease and its keys. That there is none is no error.
func (s *Store) revoke(ctx context.Context, lease int64) error {
	err := s.call(ctx, func(ctx context.Context, c *clients) error {
		_, err := c.lease.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: lease}, callOptions...)
		if leaseGone(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("revoking a lease: %w", err)
	}
	return nil
}
