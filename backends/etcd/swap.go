package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// maxPuts is how many keys that expire a transaction puts at most. etcd takes 128
// operations.
const maxPuts = 100

// Swap is one transaction: if the record's revision is as expected, the record and
// its expiring keys are put, else what there is is read. One that creates the
// record compares the session's key, too (see session.Fence).
func (s *Store) Swap(ctx context.Context, swap replicated.Swap) (replicated.SwapResult, error) {
	var none replicated.SwapResult
	record := s.keys.lock(swap.Key)
	txn := &pb.TxnRequest{
		Compare: []*pb.Compare{hasRevision(record, int64(swap.Expect))},
		Failure: []*pb.RequestOp{get(record)},
	}
	var creator *session
	var fence int64
	if swap.Expect == 0 {
		creator = swap.Session.(*session)
		fence = creator.fence.Load()
		txn.Compare = append(txn.Compare, hasRevision(creator.key, fence))
		txn.Failure = append(txn.Failure, get(creator.key))
	}

	expiring := swap.Expiring
	for len(expiring) > maxPuts {
		// An expiring key that is there without its record does no harm.
		early := &pb.TxnRequest{Success: s.putsOf(expiring[:maxPuts])}
		if _, err := s.commit(ctx, early); err != nil {
			return none, notApplied(expired(err))
		}
		expiring = expiring[maxPuts:]
	}
	puts := s.putsOf(expiring)

	var forget int64 // the lease that an idle record is bound to
	for attempt := 1; ; attempt++ {
		if swap.Idle {
			var err error
			if forget, err = s.idle.take(ctx, s, forget); err != nil {
				return none, notApplied(fmt.Errorf("for forgetting an idle record: %w", err))
			}
		}
		txn.Success = append([]*pb.RequestOp{put(record, swap.Value, forget)}, puts...)
		answer, err := s.commit(ctx, txn)
		switch {
		case err == nil && answer.GetSucceeded():
			return replicated.SwapResult{
				Applied: true,
				Entry:   replicated.Entry{Revision: uint64(answer.GetHeader().GetRevision())},
			}, nil
		case err == nil:
			return refusal(answer, creator, fence)
		case leaseGone(err) && swap.Idle && attempt == 1:
			// Whichever lease it is that is gone, with another one for the idle
			// record it is one of the others the next time.
		case errors.Is(err, rpctypes.ErrNoSpace):
			return s.outOfSpace(ctx, swap, err)
		case len(expiring) > 0:
			return none, expired(err)
		default:
			return none, err
		}
	}
}

// refusal tells why a swap was not applied: with the record that there is, or,
// if a create met none, with an error.
func refusal(answer *pb.TxnResponse, creator *session, fence int64) (replicated.SwapResult, error) {
	found := entry(answer, 0)
	if found.Revision != 0 || creator == nil {
		return replicated.SwapResult{Entry: found}, nil
	}
	now := int64(entry(answer, 1).Revision)
	if now < fence {
		// There is no key, or one of an earlier state of the cluster.
		creator.finish()
		return replicated.SwapResult{}, notApplied(replicated.ErrSessionEnded)
	}
	// Another Fence has been applied, which may be one whose answer was lost: the
	// next create is to compare with that.
	creator.fencedAt(now)
	return replicated.SwapResult{}, replicated.ErrFenced
}

// outOfSpace finds out what became of a swap that was answered so. Whatever
// became of it had happened before the answer, so a read tells; but not if others
// have changed the record since.
func (s *Store) outOfSpace(ctx context.Context, swap replicated.Swap, reason error) (replicated.SwapResult, error) {
	found, err := s.Get(ctx, swap.Key)
	switch {
	case err != nil:
	case found.Revision == swap.Expect:
		return replicated.SwapResult{}, notApplied(reason)
	case bytes.Equal(found.Value, swap.Value): // batch numbers make values differ
		return replicated.SwapResult{Applied: true, Entry: replicated.Entry{Revision: found.Revision}}, nil
	}
	return replicated.SwapResult{}, reason
}

// putsOf puts keys on the leases that let them expire.
func (s *Store) putsOf(expiring []replicated.Expiring) (puts []*pb.RequestOp) {
	for _, e := range expiring {
		puts = append(puts, put(s.keys.expiringKey(int64(e.ID)), nil, int64(e.ID)))
	}
	return puts
}

// expired names the reason if a lease of an expiring key is gone.
func expired(err error) error {
	if leaseGone(err) {
		return fmt.Errorf("%w: %w", replicated.ErrExpired, err)
	}
	return err
}

// Get reads a record through the cluster's majority.
func (s *Store) Get(ctx context.Context, key string) (replicated.Entry, error) {
	answer, err := s.read(ctx, s.keys.lock(key))
	if err != nil {
		return replicated.Entry{}, fmt.Errorf("reading a record: %w", err)
	}
	return entry(answer, 0), nil
}

// entry returns the record that a get of a transaction found.
func entry(answer *pb.TxnResponse, operation int) replicated.Entry {
	kvs := answer.GetResponses()[operation].GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return replicated.Entry{}
	}
	return replicated.Entry{Value: kvs[0].GetValue(), Revision: uint64(kvs[0].GetModRevision())}
}
