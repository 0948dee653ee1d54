package replicated

import (
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// request is one operation that a gateway was asked to carry out. The lock's
// committer owns it, under its mutex, until it is done.
type request struct {
	kind       kind
	holder     string
	hash       nameHash      // of holder
	ttl        time.Duration // acquire
	try        bool          // acquire: never join the queue
	maxWaiters int64         // acquire: 0 is no limit
	era, token uint64        // give-back: the grant
	id         uint64        // unique in the gateway; an acquire's run, if it begins one
	since      int64         // when it came, in Unix milliseconds, for people

	phase  phase
	flying bool // in the swap that is in flight
	// leaving says that an acquire is to give up its place; a grant in flight is
	// still wanted.
	leaving bool
	// gone says that nobody waits for the answer: what is not done yet is
	// dropped, and a grant is given back.
	gone bool

	run        uint64     // acquire, queued: its place
	generation generation // of the record that has the place

	key      Expiring // acquire with a TTL: the key for the grant; ID 0: none yet
	prepared time.Time

	traced *traced // nil: it is not

	confirmed bool     // a record as new as the request was seen
	looked    []uint64 // expiring keys that were looked at since the request came

	answer    answer        // once done
	delivered chan struct{} // closed when the caller may have the answer
	done      func()        // called once, with the committer's mutex held; may be nil
	placed    func(int64)   // called, with the mutex held, when the request is queued, with the length of the queue; may be nil
	hurry     func()        // called once, when the session is lost while the request is in a swap; may be nil
}

// answer is the result of a request; which fields count depends on its kind.
type answer struct {
	acquired lock.AcquireResult
	released bool
	value    lock.Value
	err      error

	repeat bool     // acquired: the slot was the holder's already
	key    uint64   // acquired: the key that the slot keeps; 0: none, or a new one
	keys   []uint64 // value: of the holders, 0 for those that do not expire
}

type kind uint8

const (
	acquireRequest kind = iota
	giveBackRequest
	releaseRequest
	valueRequest
	resetRequest
)

type phase uint8

const (
	pending phase = iota // not part of the record
	queued               // its place is in the record
	done
)

// outcome is what a swap, if it is applied, makes of a request.
type outcome struct {
	request *request
	what    what
	answer  answer // of those that are answered
	run     uint64 // of those that are queued
	holder  string // of named grants: the holder that has the token
}

type what uint8

const (
	isQueued   what = iota
	isAnswered      // with answer
	isValue         // with the value of the new record
	hasLeft         // its place is gone
)
