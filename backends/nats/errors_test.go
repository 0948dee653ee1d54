package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

func code(code jetstream.ErrorCode, description string) error {
	return &jetstream.APIError{Code: 400, ErrorCode: code, Description: description}
}

// failures are errors of a publication, and whether the message was certainly not
// stored.
var failures = []struct {
	name    string
	err     error
	refused bool
	advice  string // what the error tells the operator
}{
	{"NotSent", &unsentError{errBroke}, true, "connection to NATS broke"},
	{"NoConnectionInTime", &unsentError{fmt.Errorf("connecting to NATS: refused: %w", context.DeadlineExceeded)}, true, "refused"},
	{"Closed", &unsentError{errClosed}, true, "closed"},
	{"NoPermission", errNoPermission, true, "$KV.BUCKET.>"},
	{"NoResponders", nats.ErrNoResponders, true, "electing a leader"},
	{"MaxPayload", nats.ErrMaxPayload, true, "max_payload"},
	{"NoHeaders", nats.ErrHeadersNotSupported, true, "headers"},
	{"BadSubject", nats.ErrBadSubject, true, "subject"},
	{"WrongLastSequence", code(10071, "wrong last sequence: 7"), true, "wrong last sequence"},
	{"WriteUnderWay", code(10164, "wrong last sequence"), true, "wrong last sequence"},
	{"BucketFull", code(10077, "maximum bytes exceeded"), true, "max_bytes"},
	{"TooManyMessages", code(10077, "maximum messages exceeded"), true, "max_bytes"},
	{"AccountFull", code(10002, "resource limits exceeded for account"), true, "limits"},
	{"ServerFull", code(10023, "insufficient resources"), true, "storage"},
	{"MemoryFull", code(10028, "insufficient memory resources available"), true, "memory"},
	{"StorageFull", code(10047, "insufficient storage resources available"), true, "storage"},
	{"NoLimits", code(10120, "no JetStream default or applicable tiered limit present"), true, "replicas"},
	{"TooLarge", code(10054, "message size exceeds maximum allowed"), true, "max_msg_size"},
	{"Sealed", code(10109, "invalid operation on sealed stream"), true, "sealed"},
	{"NoTTL", code(10166, "per-message TTL is disabled"), true, "--allow-msg-ttl"},
	{"BadTTL", code(10165, "invalid per-message TTL"), true, "TTL"},
	{"NoLeader", code(10008, "JetStream system temporarily unavailable"), true, "electing"},
	{"NoJetStream", code(10076, "JetStream not enabled"), true, "with JetStream"},
	{"NoJetStreamForAccount", code(10039, "JetStream not enabled for account"), true, "account"},
	{"NoStream", code(10059, "stream not found"), true, "gone"},

	{"StoreClosed", code(10077, "store is closed"), false, "closed"},
	{"SequenceMismatch", code(10063, "expected stream sequence does not match"), false, "sequence"},
	{"UnknownCode", code(19999, "something new"), false, "something new"},
	{"Deadline", context.DeadlineExceeded, false, "did not answer in time"},
	{"Canceled", context.Canceled, false, "did not answer in time"},
	{"ConnectionBroke", errBroke, false, "broke"},
	{"ConnectionClosed", nats.ErrConnectionClosed, false, "closed"},
	{"Timeout", nats.ErrTimeout, false, "timeout"},
	{"AnotherHistory", errAnotherHistory, false, "made anew"},
	{"Unreadable", errors.New("NATS: an answer that cannot be read"), false, "cannot be read"},
}

func TestWhichErrorsAreCertain(t *testing.T) {
	for _, f := range failures {
		for _, err := range []error{f.err, fmt.Errorf("wrapped: %w", f.err), explain(f.err)} {
			if got := refused(err); got != f.refused {
				t.Errorf("%s: that the message was refused is said to be %v; want %v", f.name, got, f.refused)
			}
		}
	}
}

func TestErrorsTellWhatToDo(t *testing.T) {
	for _, f := range failures {
		if got := explain(f.err).Error(); !strings.Contains(got, f.advice) {
			t.Errorf("%s: the error is %q; want %q in it", f.name, got, f.advice)
		}
	}
}

func TestExplainedErrorsAreFound(t *testing.T) {
	for _, f := range failures {
		if err := notApplied(explain(f.err)); !errors.Is(err, f.err) || !errors.Is(err, replicated.ErrNotApplied) {
			t.Errorf("%s is not found in %v", f.name, err)
		}
	}
}

func TestBothCodesOfALostComparisonAreConflicts(t *testing.T) {
	for _, c := range []struct {
		err            error
		conflict, busy bool
	}{
		{code(10071, ""), true, false}, {code(10164, ""), true, true}, {code(10077, ""), false, false}, {context.DeadlineExceeded, false, false},
	} {
		conflict, busy := conflicts(notApplied(explain(c.err)))
		if conflict != c.conflict || busy != c.busy {
			t.Errorf("%v: conflict %v, busy %v; want %v, %v", c.err, conflict, busy, c.conflict, c.busy)
		}
	}
}

func TestForbiddenSubjectIsFound(t *testing.T) {
	err := fmt.Errorf("%w: %s", nats.ErrPermissionViolation, `Permissions Violation for Publish to "$KV.a.locks.YQ"`)
	if subject, ok := forbidden(err); !ok || subject != "$KV.a.locks.YQ" {
		t.Errorf("the subject is %q, %v", subject, ok)
	}
	for _, other := range []error{nats.ErrPermissionViolation, fmt.Errorf("%w: %s", nats.ErrPermissionViolation, `Permissions Violation for Subscription to "lockgateway.a.YQ"`)} {
		if subject, ok := forbidden(other); ok {
			t.Errorf("%v is taken to be about %q", other, subject)
		}
	}
}
