package lock

import (
	"errors"
	"fmt"
)

var (
	// ErrUnavailable says that the operation certainly did not happen: the
	// backend cannot serve now, or a limit is reached. It may be tried again.
	ErrUnavailable = errors.New("the lock backend cannot serve the request now; nothing was changed")

	// ErrOutcomeUnknown says that the backend stopped answering, and the
	// operation may or may not have happened, or happen yet.
	ErrOutcomeUnknown = errors.New("the lock backend stopped answering; whether the request was carried out is unknown")

	// ErrClosing says that the backend is shutting down and the operation
	// certainly did not happen.
	ErrClosing = errors.New("the server is shutting down, or its configuration was replaced; nothing was changed")
)

// LimitError says that a limit set by the operator refused the request, which
// changed nothing. It is an [ErrUnavailable]. Its text may be shown to clients.
type LimitError struct {
	Limit string // the setting's name, for example "max_waiters"
	Max   int64  // its value
}

// Error names the limit and its value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the limit %s %d of this server is reached; nothing was changed", e.Limit, e.Max)
}

// Is reports that a reached limit is a kind of ErrUnavailable.
func (e *LimitError) Is(target error) bool { return target == ErrUnavailable }

// RecordError says that the store has something under a lock's key that this
// version cannot read, and therefore neither serves nor overwrites. It is an
// [ErrUnavailable]. Its text names the key, and may be shown to clients of the
// lock only.
type RecordError struct {
	Key string // in the store
	Err error  // what is wrong with it
}

// Error names the key and what is wrong.
func (e *RecordError) Error() string {
	return fmt.Sprintf("the store's record %q of this lock cannot be read, and is left as it is; nothing was changed: %v", e.Key, e.Err)
}

// Is reports that such a record is a kind of ErrUnavailable.
func (e *RecordError) Is(target error) bool { return target == ErrUnavailable }

// Unwrap returns what is wrong.
func (e *RecordError) Unwrap() error { return e.Err }
