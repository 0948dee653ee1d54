package lock

import (
	"context"
	"math"
	"time"
)

// Forever is the wait of a request that has no time-out.
const Forever time.Duration = math.MaxInt64

// Backend keeps locks. All methods may be called by any number of goroutines.
//
// Every error of an operation is [ErrUnavailable] (certainly not done),
// [ErrOutcomeUnknown] or [ErrClosing] (certainly not done) in the sense of
// errors.Is; Acquire returns the context's error besides.
type Backend interface {
	// Acquire takes a slot, or waits for one in the queue.
	//
	// It returns a result with Acquired set once the slot is taken; the caller
	// then owes the backend either the delivery of that answer or a GiveBack.
	// It returns a result without it when there was no slot within the wait,
	// when the lock was reset, or when the holder released while it waited.
	//
	// When ctx is done while the request waits, the request leaves the queue
	// and ctx's error comes back; no slot is then held for it, even if it was
	// granted at that very moment.
	Acquire(ctx context.Context, req AcquireRequest) (AcquireResult, error)

	// GiveBack undoes one answer that Acquire returned and that reached
	// nobody. It takes the request and the result as they were, at most once
	// per answer. A slot that nobody else was told of goes to the next waiter.
	//
	// Anonymous slots are interchangeable: the count is lowered, unless it can
	// be seen that the slot of that grant was released or reset meanwhile
	// (the count fell to 0 since). A named slot counts its answers and is
	// freed with the last of them; the answer of a grant that has ended
	// changes nothing.
	GiveBack(ctx context.Context, req AcquireRequest, res AcquireResult) error

	// Release frees one slot and hands it to the head of the queue. Without a
	// holder it frees an anonymous slot, whoever took it. With one it frees
	// that holder's slot and no other, and withdraws that holder's queued
	// requests. It reports whether a slot was freed.
	Release(ctx context.Context, key Key, holder string) (bool, error)

	// Value reports the state of a lock. With detail it fills in Waiting and
	// Holders too.
	Value(ctx context.Context, key Key, detail bool) (Value, error)

	// Reset frees all slots of both kinds, resolves all queued requests as not
	// acquired, and makes the lock as good as never used, except that tokens
	// go on growing.
	Reset(ctx context.Context, key Key) error

	// Ready returns nil if operations can be expected to succeed, as far as is
	// known without asking: the store answered the last time that it was asked,
	// and the backend has all that it needs there. It does not block. Otherwise
	// the error says what is wrong, for an operator to read; it is an
	// [ErrUnavailable] or, while the backend drains or when it is closed, an
	// [ErrClosing].
	Ready() error

	// Drain ends all waiting, now and in future: requests that wait, or would
	// have to, get ErrClosing, unless their grant is already committed or in
	// flight. Everything else goes on. It does not block.
	Drain()

	// Close drains, and frees what the backend has in this process: its
	// connections, goroutines and timers. It takes a few seconds at most, also
	// when a store does not answer. Operations after it get ErrClosing.
	// Slots stay held where the store outlives the process.
	Close() error
}

// AcquireRequest says what to acquire, and how.
type AcquireRequest struct {
	Key Key

	// Wait is how long to stay in the queue for a slot. Zero or less tries
	// once; [Forever] has no end.
	Wait time.Duration

	// Holder names who takes the slot; empty takes an anonymous one. A holder
	// has at most one slot of a lock: acquiring again answers with the token
	// of the slot it has. Requests of one holder share one place in the queue.
	Holder string

	// TTL, if positive, frees a holder's slot this long after the grant. A
	// holder that acquires again with a TTL renews it, from then on; without
	// one it leaves the expiry as it is. A backend rounds it up to what its
	// clock can do, and never frees a slot early. It is ignored without a
	// Holder.
	TTL time.Duration

	// MaxWaiters, if positive, refuses to make the queue longer than this:
	// the request gets a [LimitError] and nothing changes.
	MaxWaiters int64
}

// AcquireResult is the answer to an acquire.
type AcquireResult struct {
	// Acquired says whether a slot is held. The other fields are zero if not.
	Acquired bool

	// Value is the number of holders right after this grant; for a holder
	// that had its slot already, the number now.
	Value int64

	// Token is the fencing token of a named slot: greater than that of every
	// named grant of this lock before, across resets and forgetting, and less
	// than 2^53. Zero for an anonymous slot.
	Token uint64

	// ExpiresIn is how much time the slot has left, counted from when the
	// expiry was set in the store. Zero if it has no TTL.
	ExpiresIn time.Duration

	// Mark is the backend's own note of an anonymous grant, by which GiveBack
	// recognises it.
	Mark uint64
}

// Value is the state of a lock.
type Value struct {
	// Fresh says that the lock was never acquired, or was reset or forgotten
	// since; the other fields are then zero.
	Fresh bool

	// Held is the number of holders, anonymous and named.
	Held int64

	// Waiting is the length of the queue, in places.
	Waiting int64

	// Holders lists the named holders in the order of their tokens.
	Holders []Holder
}

// Holder is one named holder of a lock.
type Holder struct {
	Name  string
	Token uint64

	// ExpiresIn is an estimate of how long the slot has left; zero if it has
	// no TTL. Never negative.
	ExpiresIn time.Duration
}
