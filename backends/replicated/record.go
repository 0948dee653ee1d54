package replicated

import (
	"crypto/sha256"
	"slices"
	"time"
)

// record is the state of one lock, as the store keeps it. It changes only by
// compare-and-swap, so a lock is a linearizable register whatever the number
// of gateways. All that can happen to a lock is a transition in transitions.go.
//
// Times are Unix milliseconds by the clock of some gateway, for people to read:
// nothing is decided by them.
//
// Invariants: held() <= the lock's maximum; no two holders have one name; at
// most one ticket has a given hash; no ticket is empty; tokens of holders
// differ.
type record struct {
	name string // of the lock; only where the store's key is a hash of it

	// created is random, so that what was made of a record that was deleted
	// since is told from this one. resets and eras count up from there.
	created uint64
	resets  uint64 // tickets from before a reset are void
	eras    uint64 // of the anonymous slots: see endEra

	fresh     bool  // never acquired, or not since the last reset
	anonymous int64 // slots held without a name
	busySince int64 // when the first slot was taken; 0: nothing is held
	holders   []holder
	queue     []ticket // in the order of arrival
	batches   []batch  // one per session, in the order of the last swap
	extra     []extension
}

// generation tells a record from one that was reset or created anew. It never
// recurs for one lock.
type generation struct{ created, resets uint64 }

// holder is a named slot.
type holder struct {
	name string

	// grant tells this grant from later ones of the same name. It is random.
	grant uint64

	// token is the fencing token. It is 0 from the grant until the revision of
	// the granting swap is known; index then says which grant of it this is.
	token uint64
	index uint64

	// answers counts the acquires that were, or are about to be, answered with
	// this slot, less those given back. With 0 the slot is free.
	answers uint64

	since int64 // when the slot was taken

	expiring uint64        // the key whose expiry frees the slot; 0: none
	ttl      time.Duration // of that key

	waits []SessionID // sessions with waiters that shared the ticket, not answered yet
}

// ticket is one or several places in the queue: a run, that is consecutive
// anonymous waiters of one session, or a single named place.
type ticket struct {
	since int64 // when the first of them came

	session SessionID // of a run
	run     uint64    // unique in the session; 0: not a run
	count   int64     // of places in a run, > 0

	hash       nameHash // of the name of a named place
	nameLength int      // in bytes, to know how long its holder will be
	waits      []SessionID
}

// batch is the number of the last swap that a session made of this record. It
// is how a gateway finds out whether a swap was applied whose answer was lost.
type batch struct {
	session SessionID
	number  uint64

	// pruned says that places of the session were taken away since that swap, as
	// it had ended. Its gateway may not know, and learns it here.
	pruned bool
}

// extension is something of a newer version that this one carries along.
type extension struct {
	tag   uint64
	value []byte
}

// nameHash stands for a holder's name in the queue, where names would take too
// much room.
type nameHash [16]byte

func hashName(name string) nameHash {
	sum := sha256.Sum256([]byte(name))
	return nameHash(sum[:16])
}

const (
	// maxRecordSize is the size in bytes above which a record takes no more
	// waiters and holders.
	maxRecordSize = 64 << 10

	// grantsPerRevision is how many tokens there are to a revision, and so how
	// many named grants there can be in a swap.
	grantsPerRevision = 4096

	// keptBatches is how many sessions' batch numbers are kept before those of
	// ended ones go.
	keptBatches = 32
)

func (r *record) generation() generation { return generation{r.created, r.resets} }

// era identifies the current era of the anonymous slots. It never recurs for
// one lock, since created is random.
func (r *record) era() uint64 { return r.created + r.eras }

func (r *record) held() int64 { return r.anonymous + int64(len(r.holders)) }

// waiting is the length of the queue in places.
func (r *record) waiting() int64 {
	n := int64(0)
	for i := range r.queue {
		n += r.queue[i].places()
	}
	return n
}

func (r *record) idle() bool { return r.held() == 0 && len(r.queue) == 0 }

func (t *ticket) named() bool { return t.run == 0 }

// of reports whether waiters of a session are behind the ticket.
func (t *ticket) of(s SessionID) bool {
	return !t.named() && t.session == s || t.named() && slices.Contains(t.waits, s)
}

func (t *ticket) places() int64 {
	if t.named() {
		return 1
	}
	return t.count
}

func (r *record) holder(name string) *holder {
	for i := range r.holders {
		if r.holders[i].name == name {
			return &r.holders[i]
		}
	}
	return nil
}

// namedTicket returns the index of the ticket of a name, or -1.
func (r *record) namedTicket(h nameHash) int {
	return slices.IndexFunc(r.queue, func(t ticket) bool { return t.named() && t.hash == h })
}

// sharesTicket reports whether a session waits on the ticket of a name.
func (r *record) sharesTicket(h nameHash, s SessionID) bool {
	i := r.namedTicket(h)
	return i >= 0 && slices.Contains(r.queue[i].waits, s)
}

// runTicket returns the index of a run, or -1.
func (r *record) runTicket(s SessionID, run uint64) int {
	return slices.IndexFunc(r.queue, func(t ticket) bool { return t.run == run && !t.named() && t.session == s })
}

// batchOf returns the number of the last swap of a session, or 0.
func (r *record) batchOf(s SessionID) uint64 {
	for _, b := range r.batches {
		if b.session == s {
			return b.number
		}
	}
	return 0
}

// prunes reports whether places of a session that made a swap of this record were
// taken away since its last one. A session whose number was dropped had ended, too.
func (r *record) prunes(s SessionID) bool {
	i := slices.IndexFunc(r.batches, func(b batch) bool { return b.session == s })
	return i < 0 || r.batches[i].pruned
}

// resolve makes the tokens of the grants of this revision absolute.
func (r *record) resolve(revision uint64) {
	for i := range r.holders {
		if h := &r.holders[i]; h.token == 0 {
			h.token = revision*grantsPerRevision + h.index
			h.index = 0
		}
	}
}

// clone returns a copy that shares nothing that a transition changes.
func (r *record) clone() *record {
	c := *r
	c.holders = slices.Clone(r.holders)
	for i := range c.holders {
		c.holders[i].waits = slices.Clone(c.holders[i].waits)
	}
	c.queue = slices.Clone(r.queue)
	for i := range c.queue {
		c.queue[i].waits = slices.Clone(c.queue[i].waits)
	}
	c.batches = slices.Clone(r.batches)
	return &c
}

// size returns how long the encoding is at most, with named tickets counted as
// the holders that they will be: so that a claim is never refused for size.
func (r *record) size() int {
	n := 64 + len(r.name)
	for i := range r.holders {
		n += holderSize(len(r.holders[i].name)) + 8*len(r.holders[i].waits)
	}
	for i := range r.queue {
		if t := &r.queue[i]; t.named() {
			n += holderSize(t.nameLength) + 8*len(t.waits)
		} else {
			n += runSize
		}
	}
	n += 18 * len(r.batches)
	for _, e := range r.extra {
		n += 20 + len(e.value)
	}
	return n
}

// timeSize is how long a time is at most, and latestTime the last one: that of the
// year 19800.
const (
	timeSize   = 7
	latestTime = 1<<(7*timeSize) - 1
)

const runSize = 28 + timeSize

func holderSize(nameLength int) int { return nameLength + 72 }
