package etcd

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// scripted is what a member of etcd looks like that answers transactions with
// the given errors, one after the other, and then takes them.
type scripted struct {
	pb.UnimplementedKVServer
	pb.UnimplementedLeaseServer

	mu     sync.Mutex
	errors []error
	txns   []*pb.TxnRequest
	leases int64
}

func (s *scripted) Txn(_ context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.txns = append(s.txns, txn)
	if len(s.errors) > 0 {
		err := s.errors[0]
		s.errors = s.errors[1:]
		return nil, err
	}
	return &pb.TxnResponse{Header: answer(1, 8), Succeeded: true}, nil
}

func (s *scripted) LeaseGrant(_ context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases++
	return &pb.LeaseGrantResponse{Header: answer(1, 8), ID: s.leases, TTL: r.GetTTL()}, nil
}

// swapAt swaps through a member that answers with the given errors, and returns
// the transactions that it was sent.
func swapAt(t *testing.T, swap replicated.Swap, script ...error) ([]*pb.TxnRequest, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	member := &scripted{errors: script}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, member)
	pb.RegisterLeaseServer(server, member)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	defer serving.Wait()
	defer server.Stop()

	s, err := Open(Options{
		Connection:     Connection{Endpoints: []string{"http://" + l.Addr().String()}, DialTimeout: time.Second},
		RequestTimeout: time.Second,
		ForgetAfter:    time.Hour,
		Logger:         zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = s.Swap(ctx, swap)
	member.mu.Lock()
	defer member.mu.Unlock()
	return member.txns, err
}

var change = replicated.Swap{Key: "a", Expect: 7, Value: []byte("a")}

func TestSwapInDoubtIsSentOnce(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, f := range failures {
		if f.refused {
			continue
		}
		txns, err := swapAt(t, change, f.err)
		if err == nil || errors.Is(err, replicated.ErrNotApplied) || len(txns) != 1 {
			t.Errorf("%s: the swap was sent %d times and gave the error %v; want once, and no certainty", f.name, len(txns), err)
		}
	}
}

func TestSwapThatIsRefusedForGoodIsSentOnce(t *testing.T) {
	for _, f := range failures {
		// What became of a swap without space a read tells: see outOfSpace.
		if !f.refused || tokenRefused(f.err) || f.name == "NoLeader" || f.name == "NoSpace" {
			continue
		}
		txns, err := swapAt(t, change, f.err)
		if !errors.Is(err, replicated.ErrNotApplied) || len(txns) != 1 {
			t.Errorf("%s: the swap was sent %d times and gave the error %v; want once, and certainty", f.name, len(txns), err)
		}
	}
}

func TestSwapThatIsRefusedForTheMomentIsSentAgain(t *testing.T) {
	for name, script := range map[string][]error{
		"NoLeader":     {rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCNoLeader},
		"InvalidToken": {rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrGRPCAuthOldRevision},
	} {
		txns, err := swapAt(t, change, script...)
		if err != nil || len(txns) != len(script)+1 {
			t.Errorf("%s: the swap was sent %d times and gave the error %v", name, len(txns), err)
		}
	}
	refused := rpctypes.ErrGRPCInvalidAuthToken
	if txns, err := swapAt(t, change, refused, refused, refused, refused); !errors.Is(err, replicated.ErrNotApplied) || len(txns) != tokenAttempts {
		t.Errorf("with a token that is always refused the swap was sent %d times and gave the error %v", len(txns), err)
	}
}

func TestSwapTellsWhichLeaseIsGone(t *testing.T) {
	idle, named, both := change, change, change
	idle.Idle, both.Idle = true, true
	named.Expiring = []replicated.Expiring{{ID: 77}}
	both.Expiring = named.Expiring
	gone := rpctypes.ErrGRPCLeaseNotFound
	for _, c := range []struct {
		name   string
		swap   replicated.Swap
		script []error
		leases []int64 // that the record was to have
		want   error
	}{
		{"OfIdleRecord", idle, []error{gone}, []int64{1, 2}, nil},
		{"OfIdleRecordTwice", idle, []error{gone, gone}, []int64{1, 2}, replicated.ErrNotApplied},
		{"OfExpiringKey", named, []error{gone}, []int64{0}, replicated.ErrExpired},
		{"OfOneOfBoth", both, []error{gone}, []int64{1, 2}, nil},
		{"OfBoth", both, []error{gone, gone}, []int64{1, 2}, replicated.ErrExpired},
	} {
		txns, err := swapAt(t, c.swap, c.script...)
		if !errors.Is(err, c.want) || c.want != nil && !errors.Is(err, replicated.ErrNotApplied) {
			t.Errorf("%s: the error is %v; want %v", c.name, err, c.want)
		}
		if len(txns) != len(c.leases) {
			t.Errorf("%s: the swap was sent %d times; want %d", c.name, len(txns), len(c.leases))
			continue
		}
		for i, txn := range txns {
			if got := txn.GetSuccess()[0].GetRequestPut().GetLease(); got != c.leases[i] {
				t.Errorf("%s: the record was to have the lease %d; want %d", c.name, got, c.leases[i])
			}
		}
	}
}
