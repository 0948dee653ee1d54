package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// errAnotherHistory says that an answer shows another cluster than before, or an
// earlier state of it.
var errAnotherHistory = errors.New("etcd was restored from a backup, or is another cluster than before")

// advice is what can be done about errors that do not say so themselves.
var advice = map[error]string{
	rpctypes.ErrNoSpace:          "its space quota is used up: compact, defragment, then disarm the alarm; --auto-compaction-retention prevents it",
	rpctypes.ErrRequestTooLarge:  "raise --max-request-bytes of the servers to their default of 1.5 MiB or more",
	rpctypes.ErrTooManyOps:       "raise --max-txn-ops of the servers to their default of 128 or more",
	rpctypes.ErrTooManyRequests:  "its members cannot keep up: give them faster disks, or less to do",
	rpctypes.ErrAuthFailed:       "check the settings username and password",
	rpctypes.ErrUserEmpty:        "it asks for authentication: give the settings username and password, or a client certificate",
	rpctypes.ErrInvalidAuthToken: "check the settings username and password",
	rpctypes.ErrPermissionDenied: "give the user's role readwrite permission on the prefix",
	rpctypes.ErrNoLeader:         "this member has lost the majority",
	rpctypes.ErrCorrupt:          "see its log: a member's data is damaged",
}

// explain makes an error of a call to etcd tell what can be done. errors.Is finds
// etcd's own errors in it, and those of contexts.
func explain(err error) error {
	var ofServer rpctypes.EtcdError
	if errors.As(rpctypes.Error(err), &ofServer) {
		if hint, ok := advice[ofServer]; ok {
			return fmt.Errorf("etcd: %w; %s", ofServer, hint)
		}
		return fmt.Errorf("etcd: %w", ofServer)
	}
	if s, ok := status.FromError(err); ok {
		return &callError{code: s.Code(), text: "etcd: " + s.Message()}
	}
	return fmt.Errorf("etcd: %w", err)
}

// callError is an error of gRPC, such as a broken connection.
type callError struct {
	code codes.Code
	text string
}

func (e *callError) Error() string { return e.text }

func (e *callError) Is(target error) bool {
	return e.code == codes.DeadlineExceeded && target == context.DeadlineExceeded ||
		e.code == codes.Canceled && target == context.Canceled
}

// refused reports whether an error says that a change did not happen and never
// will. sent tells whether the request may have left this process.
//
// The rest is in doubt: time-outs and cancellations of either side, members that
// stopped, connections that broke, anything unknown. Then the change may be in
// the cluster's log already, or on its way there.
func refused(err error, sent bool) bool {
	if !sent {
		return true
	}
	err = rpctypes.Error(err)
	if errors.Is(err, rpctypes.ErrNoLeader) {
		// Unavailable like many that are in doubt; but as we require a leader
		// the member says so before it looks at the request.
		return true
	}
	switch codeOf(err) {
	case codes.InvalidArgument, // too large, too many operations, wrong password: found before the request is proposed; an old auth revision: when it is applied, before the first operation
		codes.NotFound,           // no such lease: all leases are looked up before the first operation
		codes.ResourceExhausted,  // no space, unless it is a transaction: see commit; too many requests; a message beyond gRPC's limit: not read
		codes.Unauthenticated,    // the token is invalid: before
		codes.PermissionDenied,   // when it is applied, before the first operation
		codes.FailedPrecondition, // a learner, no such user: before
		codes.OutOfRange,         // a compacted or future revision: before the first operation
		codes.Unimplemented:      // no etcd: nobody took the request
		return true
	default:
		return false
	}
}

// tokenRefused reports whether the client's token was refused. The client then
// fetches another by itself, for the next request; what was asked for was not done.
func tokenRefused(err error) bool {
	err = rpctypes.Error(err)
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) ||
		errors.Is(err, rpctypes.ErrUserEmpty)
}

// leaseGone reports whether a lease does not exist.
func leaseGone(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound) }

// notApplied wraps the reason why a swap did not happen and never will.
func notApplied(err error) error { return fmt.Errorf("%w: %w", replicated.ErrNotApplied, err) }

func codeOf(err error) codes.Code {
	var ofServer rpctypes.EtcdError
	if errors.As(err, &ofServer) {
		return ofServer.Code()
	}
	return status.Code(err)
}
