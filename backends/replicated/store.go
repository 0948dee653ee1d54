package replicated

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store is what locks are kept in: small records that change only by
// compare-and-swap, sessions that tell which gateways live, and keys that
// expire. The package storetest holds implementations to what is said here.
//
// All methods may be called by any number of goroutines, and return soon after
// their context is done. Keys are any non-empty text of valid UTF-8 up to
// [MaxKeyLength] bytes; a store encodes them so that no two meet.
//
// Safety rests on Swap alone. Everything else may be late, and some of it
// wrong, as its own comment says; then somebody waits longer, or is told that
// the store is not available, and that is all.
type Store interface {
	// Swap makes s.Value the record of s.Key if the record's revision is
	// s.Expect, in one step. If it is another, Swap changes nothing and returns
	// the record that the store has.
	//
	// Where Linearizable is false the returned record may be an old one, though
	// newer than s.Expect, and the refusal itself may be false: the swap may have
	// been applied, and then the record is the one that it made or a later one. A
	// record that does not come from this swap proves that the swap was not
	// applied. (Of a create it does not if the record was just forgotten; that is
	// left open, as with Session.Fence.) That there is no record, where s.Expect
	// is not 0, proves that the expected one is gone for good.
	//
	// The error tells what is known: [ErrNotApplied] in the sense of errors.Is
	// means that the swap did not happen and never will. With any other error
	// it may have happened, or may happen later, once: as long as the record
	// keeps the revision s.Expect. A store does not send a swap a second time
	// by itself, unless the first was certainly not applied.
	//
	// A swap with s.Expect 0 is a create. A store that can fence refuses those
	// of a session that has ended ([ErrSessionEnded]) or was fenced since they
	// were sent ([ErrFenced]), both as ErrNotApplied; other swaps do not depend on
	// the session.
	// A swap that names a key that has expired is either refused ([ErrExpired]
	// and ErrNotApplied) or applied with a key that has expired.
	Swap(ctx context.Context, s Swap) (SwapResult, error)

	// Get returns the record of a key, or a zero Entry if there is none. If
	// Linearizable is false it may be old.
	Get(ctx context.Context, key string) (Entry, error)

	// Linearizable reports whether Get, Remaining, and the record that a refused
	// Swap returns, show every swap that was applied before the call began. It
	// is a constant of the store.
	Linearizable() bool

	// Epoch is a number that changes when the store turns out to be another
	// one than before, or to have gone back in time: it was restored from a
	// backup or created anew. Revisions of different epochs mean nothing to
	// each other, and epochs nothing to other processes. An answer that shows a
	// new epoch is returned after Epoch does.
	Epoch() uint64

	// Follow calls notify about changes of a record until ctx is done. It
	// returns at once. Once it has begun to follow, and after every gap, it
	// reports Event.Missed, upon which the caller reads. Events may be late,
	// out of order, doubled or lost. Calls do not overlap; notify must not
	// block, nor call Close. One may be under way when ctx is done; none is
	// when Close has returned.
	Follow(ctx context.Context, key string, notify func(Event))

	// Records calls yield with the records that there are, in no order, until
	// yield returns false. It reads a part at a time, whatever their number. Each
	// is as it was at some moment since the call, or before if Linearizable is
	// false; one that changes meanwhile may come again later, and one that changes
	// all the while be missed. The error is that of a read that failed, after which
	// nothing is yielded any more.
	Records(ctx context.Context, yield func(key string, e Entry) bool) error

	// OpenSession starts a session: a new identity, which the store keeps
	// alive until it is ended, or until the store has not heard of it for
	// SessionTTL. The description is at most [MaxDescriptionLength] bytes, and
	// for Sessions only.
	OpenSession(ctx context.Context, description string) (Session, error)

	// Sessions lists the sessions that have not ended, in no order. It may be as
	// late, and as wrong, as SessionEnded.
	Sessions(ctx context.Context) ([]SessionInfo, error)

	// SessionTTL is how long a session lives after the store last heard of it;
	// it may be longer, for example when the store elects a leader.
	SessionTTL() time.Duration

	// SessionEnded reports whether a session has ended. It may be late. It may
	// even be wrong, at a price: the waiters of that session are told that the
	// store is not available.
	SessionEnded(ctx context.Context, id SessionID) (bool, error)

	// FollowSessions calls ended with sessions that have just ended, as far as
	// the store has such events, until ctx is done. It returns at once. The
	// rules for notify of Follow apply.
	FollowSessions(ctx context.Context, ended func(SessionID))

	// NewExpiring makes a key that expires after the given time, rounded up to
	// what the store's clock can do plus some slack, and counted from now.
	// It belongs to nobody until a swap has put it in a record's company
	// (Swap.Expiring); it expires in any case.
	NewExpiring(ctx context.Context, ttl time.Duration) (Expiring, error)

	// Restart starts the time of a key over that a swap has put. If the key has
	// expired the error is [ErrExpired].
	Restart(ctx context.Context, e Expiring) error

	// Remaining returns how long each of the keys has left at least, in the
	// order of ids, counted from the beginning of the call. Zero means that
	// the key, which some committed swap put, has expired for good: no Restart
	// in flight can revive it. It is never zero early. A key that was discarded,
	// or that no committed swap put, may be zero at once.
	Remaining(ctx context.Context, ids []uint64) ([]time.Duration, error)

	// Discard removes keys that no record names any more, when it can. It does
	// not block.
	Discard(ids ...uint64)

	// Close ends what the store has in this process, within a few seconds. It
	// is called last, once. Sessions that were not ended run out.
	Close() error
}

// MaxKeyLength is the greatest length of a key in bytes.
const MaxKeyLength = 1200

// MaxDescriptionLength is the greatest length of a session's description in bytes.
const MaxDescriptionLength = 1024

var (
	// ErrNotApplied says that a swap did not happen and never will. The error
	// that wraps it says why.
	ErrNotApplied = errors.New("the store did not take the change")

	// ErrSessionEnded says that an operation of a session failed because it
	// has ended. From a Swap, it says at the same time that it was not applied:
	// errors that wrap it there wrap ErrNotApplied, too.
	ErrSessionEnded = errors.New("the session with the store has ended")

	// ErrFenced says that a create was stopped by Session.Fence, perhaps on
	// account of another record. The next one is not. It wraps ErrNotApplied.
	ErrFenced = fmt.Errorf("%w: the session was fenced after the swap began", ErrNotApplied)

	// ErrExpired says that the key has expired.
	ErrExpired = errors.New("the key has expired")
)

// SessionID identifies a session for all time. It is never zero.
type SessionID uint64

// SessionInfo is a session as others see it.
type SessionInfo struct {
	ID          SessionID
	Description string // as it was opened with
}

// Session is a gateway's identity towards the others.
type Session interface {
	ID() SessionID

	// Done is closed once the store is known to have ended the session, or
	// End was called. The session may have ended before.
	Done() <-chan struct{}

	// Fence makes sure that no swap that expects no record, and was sent under
	// this session before, is applied from now on. It returns an error that
	// wraps ErrSessionEnded if the session has ended, which has the same
	// effect. A store that cannot do it returns nil; it says so in its
	// documentation.
	Fence(ctx context.Context) error

	// End ends the session. Others are told as soon as the store can; if this
	// fails, the session runs out.
	End(ctx context.Context) error
}

// Swap is a change of a record.
type Swap struct {
	Key     string
	Expect  uint64 // the record's revision, as the store has told it; 0: there is no record
	Value   []byte // at most 64 KiB and a little; two swaps of a key that differ have different ones
	Session Session

	// Expiring are keys that this swap, if applied, makes belong to the record.
	Expiring []Expiring

	// Idle says that nothing is held and nobody waits: the store may forget
	// the record once it has been left alone for long.
	Idle bool
}

// SwapResult is what became of a swap. If it was applied, Entry has the new
// revision (its Value is left nil); if not, Entry is the record that the store
// has.
type SwapResult struct {
	Applied bool
	Entry   Entry
}

// Entry is a record at one moment.
type Entry struct {
	Value    []byte
	Revision uint64 // greater than that of any earlier swap of any key; 0: there is no record
}

// Event is news of a record that is followed.
type Event struct {
	Entry Entry // the record, unless Missed is set

	// Missed says that changes may have been missed, or that the record is
	// gone.
	Missed bool
}

// Expiring is a key that expires.
type Expiring struct {
	ID  uint64        // never zero, never recurs
	TTL time.Duration // after rounding: it lasts at least this long
}
