package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

var (
	// errAnotherHistory says that an answer shows another stream than before, or
	// an earlier state of it.
	errAnotherHistory = errors.New("the NATS bucket was made anew, or has lost what was written last")

	// errBroke says that the connection broke before the answer came.
	errBroke = errors.New("the connection to NATS broke")

	// errSilence says that no answer came in the time that an attempt has.
	errSilence = fmt.Errorf("an attempt had no answer: %w", context.DeadlineExceeded)

	// errNoPermission says that the server did not let a message of ours pass. Its
	// own words would name the lock.
	errNoPermission = errors.New("NATS: no permission to publish; give the user that on $KV.BUCKET.>, $JS.API.STREAM.INFO.KV_BUCKET, $JS.API.STREAM.CREATE.KV_BUCKET and $JS.API.STREAM.MSG.GET.KV_BUCKET")

	errClosed = errors.New("NATS: the store is closed")
)

// refusalError is something wrong with the server or the bucket that waiting does
// not cure.
type refusalError struct{ text string }

func (e *refusalError) Error() string { return e.text }

func refusalf(format string, args ...any) error {
	return &refusalError{text: fmt.Sprintf(format, args...)}
}

// unsentError is why a message did not leave this process.
type unsentError struct{ cause error }

func (e *unsentError) Error() string { return e.cause.Error() }
func (e *unsentError) Unwrap() error { return e.cause }

// Codes of JetStream that the client has no names for.
const (
	codeAccountFull       jetstream.ErrorCode = 10002
	codeNoPeers           jetstream.ErrorCode = 10005
	codeUnavailable       jetstream.ErrorCode = 10008
	codeServerFull        jetstream.ErrorCode = 10023
	codeMemoryFull        jetstream.ErrorCode = 10028
	codeStorageFull       jetstream.ErrorCode = 10047
	codeNoCluster         jetstream.ErrorCode = 10074
	codeStoreFailed       jetstream.ErrorCode = 10077
	codeSealed            jetstream.ErrorCode = 10109
	codeNoLimits          jetstream.ErrorCode = 10120
	codeMessageTTLInvalid jetstream.ErrorCode = 10165
	codeMessageTTLOff     jetstream.ErrorCode = 10166
)

// advice is what can be done about errors that do not say so themselves.
var advice = map[jetstream.ErrorCode]string{
	codeAccountFull:   "raise the account's limits of JetStream",
	codeNoPeers:       "check the settings replicas and placement, and whether so many servers run",
	codeNoCluster:     "check the setting replicas: there is one server",
	codeServerFull:    "the server's storage for JetStream is used up: give it more",
	codeMemoryFull:    "the server's memory for JetStream is used up: give it more",
	codeStorageFull:   "the server's storage for JetStream is used up: give it more",
	codeStoreFailed:   "if the bucket is full, raise its max_bytes: nats stream edit KV_BUCKET --max-bytes",
	codeUnavailable:   "its servers have lost their majority, or are electing a leader",
	codeNoLimits:      "the account has no limits of JetStream for this number of replicas",
	codeMessageTTLOff: "allow it: nats stream edit KV_BUCKET --allow-msg-ttl",
	jetstream.JSErrCodeStreamMessageExceedsMaximum:   "raise the bucket's max_msg_size to 128 KiB or more",
	jetstream.JSErrCodeJetStreamNotEnabled:           "start the servers with JetStream",
	jetstream.JSErrCodeJetStreamNotEnabledForAccount: "enable JetStream for the user's account",
	jetstream.JSErrCodeStreamNotFound:                "the bucket is gone",
}

// explain makes an error of a call to NATS tell what can be done. errors.Is and
// errors.As find what it was made of.
func explain(err error) error {
	var api *jetstream.APIError
	var unsent *unsentError
	switch {
	case errors.As(err, &unsent): // by itself it tells why
		return err
	case errors.As(err, &api):
		text := fmt.Sprintf("NATS: %s (%d)", api.Description, api.ErrorCode)
		if hint, ok := advice[api.ErrorCode]; ok {
			text += "; " + hint
		}
		return &explainedError{text: text, cause: err}
	case errors.Is(err, nats.ErrNoResponders):
		return &explainedError{text: "NATS: nobody takes messages of the bucket: it is gone, its servers are electing a leader, or there is no JetStream", cause: err}
	case errors.Is(err, nats.ErrMaxPayload):
		return &explainedError{text: "NATS: the message is too large; raise max_payload of the servers to 128 KiB or more", cause: err}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &explainedError{text: "NATS did not answer in time: " + err.Error(), cause: err}
	}
	return err
}

type explainedError struct {
	text  string
	cause error
}

func (e *explainedError) Error() string { return e.text }
func (e *explainedError) Unwrap() error { return e.cause }

// refused reports whether an error says that a message was not stored and never
// will be. That depends on whether one server keeps the stream, or several.
//
// The rest is in doubt: time-outs, connections that broke or were closed while the
// answer was awaited, answers that make no sense, errors that are not known. Then
// the message may be stored already, or be on its way. So it is with conflicts: a
// leader compares before it proposes the message, but after a partition there may be
// two for a while. Each gets the message, and the answer of the one that was deposed,
// which compares with what was before, may come first. So it is, too, with limits that
// one server may think are reached, and another not.
func refused(err error, oneServer bool) bool {
	var unsent *unsentError
	if errors.As(err, &unsent) {
		return true
	}
	for _, certain := range []error{
		errNoPermission,             // the server drops the message as it reads it, and says so
		nats.ErrNoResponders,        // the server had nobody to pass it on to
		nats.ErrMaxPayload,          // the client knows the server's limit
		nats.ErrHeadersNotSupported, // the client has not been connected yet, or to something ancient
		nats.ErrBadSubject,          // the client looks before it sends
		nats.ErrInvalidConnection,   // likewise
		nats.ErrConnectionDraining,  // likewise
	} {
		if errors.Is(err, certain) {
			return true
		}
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case jetstream.JSErrCodeStreamMessageExceedsMaximum, // by the stream's settings: before it is proposed
		jetstream.JSErrCodeJetStreamNotEnabled,           // nobody took it
		jetstream.JSErrCodeJetStreamNotEnabledForAccount, // nobody took it
		jetstream.JSErrCodeStreamNotFound,                // nobody took it
		codeUnavailable,                                  // no leader: before
		codeSealed,                                       // before
		codeMessageTTLInvalid,                            // before
		codeMessageTTLOff:                                // before
		return true
	case codeAccountFull, // limits of the account: before it is stored
		codeMemoryFull,  // likewise
		codeStorageFull, // likewise
		codeNoLimits,    // likewise
		codeServerFull:  // limits of the server: likewise
		return oneServer
	case codeStoreFailed:
		// Full: before it is stored. (Of a store that is being closed the code is
		// the same; it may be stored.)
		return oneServer && strings.HasPrefix(api.Description, "maximum ")
	default:
		return false
	}
}

// conflicts reports whether a message was refused since the key had another last
// sequence, or another write of the key was under way (busy): then the leader has
// not compared, and reading at once may show what was before. By itself neither says
// that the message was not stored; see refused.
func conflicts(err error) (conflict, busy bool) {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false, false
	}
	busy = api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
	return busy || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence, busy
}

// passes reports whether a message was refused for a reason that may be over in a
// moment.
func passes(err error) bool {
	var unsent *unsentError
	if errors.Is(err, nats.ErrNoResponders) || errors.As(err, &unsent) && errors.Is(err, errBroke) {
		return true
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeUnavailable
}

// notApplied wraps the reason why a swap did not happen and never will.
func notApplied(err error) error { return fmt.Errorf("%w: %w", replicated.ErrNotApplied, err) }
