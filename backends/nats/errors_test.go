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

// refusal says whether a message was certainly not stored.
type refusal int

const (
	inDoubt          refusal = iota
	certainOnOneOnly         // certain if one server keeps the stream
	certain
)

// failures are errors of a publication.
var failures = []struct {
	name    string
	err     error
	refused refusal
	advice  string // what the error tells the operator
}{
	{"NotSent", &unsentError{errBroke}, certain, "connection to NATS broke"},
	{"NoConnectionInTime", &unsentError{fmt.Errorf("connecting to NATS: refused: %w", context.DeadlineExceeded)}, certain, "refused"},
	{"Closed", &unsentError{errClosed}, certain, "closed"},
	{"NoPermission", errNoPermission, certain, "$KV.BUCKET.>"},
	{"NoResponders", nats.ErrNoResponders, certain, "electing a leader"},
	{"MaxPayload", nats.ErrMaxPayload, certain, "max_payload"},
	{"NoHeaders", nats.ErrHeadersNotSupported, certain, "headers"},
	{"BadSubject", nats.ErrBadSubject, certain, "subject"},
	{"BucketFull", code(10077, "maximum bytes exceeded"), certainOnOneOnly, "max_bytes"},
	{"TooManyMessages", code(10077, "maximum messages exceeded"), certainOnOneOnly, "max_bytes"},
	{"AccountFull", code(10002, "resource limits exceeded for account"), certainOnOneOnly, "limits"},
	{"ServerFull", code(10023, "insufficient resources"), certainOnOneOnly, "storage"},
	{"MemoryFull", code(10028, "insufficient memory resources available"), certainOnOneOnly, "memory"},
	{"StorageFull", code(10047, "insufficient storage resources available"), certainOnOneOnly, "storage"},
	{"NoLimits", code(10120, "no JetStream default or applicable tiered limit present"), certainOnOneOnly, "replicas"},
	{"TooLarge", code(10054, "message size exceeds maximum allowed"), certain, "max_msg_size"},
	{"Sealed", code(10109, "invalid operation on sealed stream"), certain, "sealed"},
	{"NoTTL", code(10166, "per-message TTL is disabled"), certain, "--allow-msg-ttl"},
	{"BadTTL", code(10165, "invalid per-message TTL"), certain, "TTL"},
	{"NoLeader", code(10008, "JetStream system temporarily unavailable"), certain, "electing"},
	{"NoJetStream", code(10076, "JetStream not enabled"), certain, "with JetStream"},
	{"NoJetStreamForAccount", code(10039, "JetStream not enabled for account"), certain, "account"},
	{"NoStream", code(10059, "stream not found"), certain, "gone"},

	{"WrongLastSequence", code(10071, "wrong last sequence: 7"), inDoubt, "wrong last sequence"},
	{"WriteUnderWay", code(10164, "wrong last sequence"), inDoubt, "wrong last sequence"},
	{"StoreClosed", code(10077, "store is closed"), inDoubt, "closed"},
	{"SequenceMismatch", code(10063, "expected stream sequence does not match"), inDoubt, "sequence"},
	{"UnknownCode", code(19999, "something new"), inDoubt, "something new"},
	{"Deadline", context.DeadlineExceeded, inDoubt, "did not answer in time"},
	{"Canceled", context.Canceled, inDoubt, "did not answer in time"},
	{"ConnectionBroke", errBroke, inDoubt, "broke"},
	{"ConnectionClosed", nats.ErrConnectionClosed, inDoubt, "closed"},
	{"Timeout", nats.ErrTimeout, inDoubt, "timeout"},
	{"AnotherHistory", errAnotherHistory, inDoubt, "made anew"},
	{"Unreadable", errors.New("NATS: an answer that cannot be read"), inDoubt, "cannot be read"},
}

func TestWhichErrorsAreCertain(t *testing.T) {
	for _, f := range failures {
		for _, err := range []error{f.err, fmt.Errorf("wrapped: %w", f.err), explain(f.err)} {
			for _, oneServer := range []bool{true, false} {
				want := f.refused == certain || f.refused == certainOnOneOnly && oneServer
				if got := refused(err, oneServer); got != want {
					t.Errorf("%s: that the message was refused is said to be %v; want %v, with one server %v", f.name, got, want, oneServer)
				}
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
