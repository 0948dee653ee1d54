package lock

import (
	"context"
	"iter"
	"time"
)

// Inspector shows the state of all locks, to those who operate the service:
// what it returns contains lock ids and holders' names, which are secrets, and
// nothing here takes part in serving locks.
//
// Times are by the clocks of gateways, which may differ, and are for people: no
// backend decides anything by them. Errors are as those of [Backend].
type Inspector interface {
	// Locks yields the locks that are held or waited for, and with idle set the
	// others that the backend remembers, too. They come in no order, and are read
	// one after the other: each was so at some moment since the call. One that
	// changes meanwhile may come twice, in which case the later state is the newer
	// one; and one that is rewritten all the while may be missed.
	//
	// An error that is a [*RecordError] concerns one lock, and the next ones
	// follow. Any other is the last thing that is yielded.
	Locks(ctx context.Context, idle bool) iter.Seq2[State, error]

	// Inspect returns everything that is known of one lock.
	Inspect(ctx context.Context, key Key) (Detail, error)

	// Gateways lists those that live and share the locks, in the order in which
	// they started; none if the locks are this process's alone.
	Gateways(ctx context.Context) ([]Gateway, error)

	// Summary adds up what this gateway knows without asking anybody: all locks,
	// if they are its own; else its own waiters, and the locks that they wait for.
	// It is cheap enough to be called every few seconds.
	Summary() Summary
}

// State is a lock in short.
type State struct {
	Key Key

	Held    int64
	Waiting int64 // places in the queue

	// HeldSince is since when the lock was never quite free; zero if it is.
	HeldSince time.Time

	// WaitingSince is when the head of the queue came; zero if nobody waits.
	WaitingSince time.Time
}

// Detail is everything that is known of a lock.
type Detail struct {
	State

	// Fresh says that the lock was never acquired, or was reset or forgotten
	// since.
	Fresh bool

	// Anonymous is how many of the slots are held without a name.
	Anonymous int64

	// Holders are the named holders in the order of their tokens. Of very many
	// some may be missing: Held less Anonymous is how many there are.
	Holders []HolderDetail

	// Queue is the queue from its head on. Of a very long one the end may be
	// missing.
	Queue []QueueEntry
}

// HolderDetail is a named holder of a lock.
type HolderDetail struct {
	Holder

	// Since is when it got the slot.
	Since time.Time
}

// QueueEntry is consecutive places in a queue.
type QueueEntry struct {
	// Gateways are the IDs of those whose requests wait there: one, or several
	// where they share the place of a holder. None if the locks are this
	// process's alone.
	Gateways []string

	// Count is how many places these are.
	Count int64

	// Named says that it is the one place of a holder.
	Named bool

	// Since is when the first of them came.
	Since time.Time
}

// Gateway is a process that serves locks from a store which it shares with others.
type Gateway struct {
	// ID identifies its session with the store.
	ID string

	// Self says that it is this process.
	Self bool

	// Host is the name of the machine, and Since when the session began, as the
	// gateway says itself.
	Host  string
	Since time.Time
}

// Summary is the load of a backend in figures.
type Summary struct {
	Held int64 // slots

	// Waiting is places in queues: of this gateway's own waiters, so that the sum
	// over all gateways is that of all.
	Waiting int64

	// OldestHold is for how long the slot is held that has been so for longest, of
	// those of which that is known: slots with a name, and that of a lock with a
	// maximum of one. (Slots without a name are interchangeable: which of them was
	// released nobody can tell.) OldestWait is for how long the request has waited
	// that has done so for longest. Zero: there is none.
	OldestHold, OldestWait time.Duration
}
