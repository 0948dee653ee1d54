package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// failures are errors of a transaction as they come from gRPC, and whether it
// certainly was not applied.
var failures = []struct {
	name    string
	err     error
	refused bool
	advice  string // what the error tells the operator
}{
	{"NoSpace", rpctypes.ErrGRPCNoSpace, true, "disarm"},
	{"RequestTooLarge", rpctypes.ErrGRPCRequestTooLarge, true, "--max-request-bytes"},
	{"MessageTooLarge", status.Error(codes.ResourceExhausted, "grpc: received message larger than max (3145843 vs. 2097152)"), true, "larger than max"},
	{"TooManyRequests", rpctypes.ErrGRPCRequestTooManyRequests, true, "keep up"},
	{"TooManyOps", rpctypes.ErrGRPCTooManyOps, true, "--max-txn-ops"},
	{"WrongPassword", rpctypes.ErrGRPCAuthFailed, true, "username and password"},
	{"NoUser", rpctypes.ErrGRPCUserEmpty, true, "username and password"},
	{"InvalidToken", rpctypes.ErrGRPCInvalidAuthToken, true, "username and password"},
	{"OldAuthRevision", rpctypes.ErrGRPCAuthOldRevision, true, "revision of auth store is old"},
	{"PermissionDenied", rpctypes.ErrGRPCPermissionDenied, true, "permission on the prefix"},
	{"LeaseNotFound", rpctypes.ErrGRPCLeaseNotFound, true, "lease not found"},
	{"Compacted", rpctypes.ErrGRPCCompacted, true, "compacted"},
	{"FutureRevision", rpctypes.ErrGRPCFutureRev, true, "future revision"},
	{"NoLeader", rpctypes.ErrGRPCNoLeader, true, "majority"},
	{"Learner", rpctypes.ErrGRPCNotSupportedForLearner, true, "learner"},
	{"NoEtcd", status.Error(codes.Unimplemented, "unexpected HTTP status code received from server: 404 (Not Found)"), true, "404"},

	{"ServersTimeout", rpctypes.ErrGRPCTimeout, false, "timed out"},
	{"LeaderFailed", rpctypes.ErrGRPCTimeoutDueToLeaderFail, false, "leader failure"},
	{"ConnectionOfServersLost", rpctypes.ErrGRPCTimeoutDueToConnectionLost, false, "connection lost"},
	{"LeaderChanged", rpctypes.ErrGRPCLeaderChanged, false, "leader changed"},
	{"ServerStopped", rpctypes.ErrGRPCStopped, false, "server stopped"},
	{"Unhealthy", rpctypes.ErrGRPCUnhealthy, false, "unhealthy"},
	{"Corrupt", rpctypes.ErrGRPCCorrupt, false, "log"},
	{"CanceledByServer", rpctypes.ErrGRPCCanceled, false, "canceled"},
	{"DeadlineOfServer", rpctypes.ErrGRPCDeadlineExceeded, false, "deadline"},
	{"Deadline", status.FromContextError(context.DeadlineExceeded).Err(), false, "deadline"},
	{"Canceled", status.FromContextError(context.Canceled).Err(), false, "canceled"},
	{"ConnectionBroke", status.Error(codes.Unavailable, "error reading from server: EOF"), false, "EOF"},
	{"Unknown", status.Error(codes.Unknown, "raft: proposal dropped"), false, "proposal dropped"},
	{"Internal", status.Error(codes.Internal, "stream terminated"), false, "stream terminated"},
	{"NotOfGRPC", errors.New("something else"), false, "something else"},
}

func TestWhichErrorsAreCertain(t *testing.T) {
	for _, f := range failures {
		// Errors come as they are, as the client's, or wrapped.
		for _, err := range []error{f.err, rpctypes.Error(f.err), fmt.Errorf("wrapped: %w", rpctypes.Error(f.err))} {
			if got := refused(err, true); got != f.refused {
				t.Errorf("%s: that the request was refused is said to be %v; want %v", f.name, got, f.refused)
			}
		}
		if !refused(f.err, false) {
			t.Errorf("%s: a request that was not sent is in doubt", f.name)
		}
	}
}

func TestErrorsTellWhatToDo(t *testing.T) {
	for _, f := range failures {
		if got := explain(f.err).Error(); !strings.Contains(got, f.advice) || !strings.HasPrefix(got, "etcd: ") || strings.Contains(got, "rpc error") {
			t.Errorf("%s: the error is %q; want %q in it", f.name, got, f.advice)
		}
	}
}

func TestExplainedErrorsAreFound(t *testing.T) {
	for _, c := range []struct{ err, target error }{
		{rpctypes.ErrGRPCNoSpace, rpctypes.ErrNoSpace},
		{rpctypes.ErrGRPCLeaseNotFound, rpctypes.ErrLeaseNotFound},
		{status.FromContextError(context.DeadlineExceeded).Err(), context.DeadlineExceeded},
		{status.FromContextError(context.Canceled).Err(), context.Canceled},
		{context.Canceled, context.Canceled},
	} {
		if err := notApplied(explain(c.err)); !errors.Is(err, c.target) {
			t.Errorf("%v is not found in %v", c.target, err)
		}
	}
	if !leaseGone(notApplied(explain(rpctypes.ErrGRPCLeaseNotFound))) {
		t.Error("an explained error does not tell that a lease is gone")
	}
}
