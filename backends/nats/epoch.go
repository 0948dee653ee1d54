package nats

import (
	"sync"
	"time"
)

// history watches whether the stream stays the same and goes forward. One that was
// created anew has another time of creation; of one that lost its end, as after a
// power failure or a restored backup, the sequence is lower than it was.
type history struct {
	mu       sync.Mutex // guards what follows
	epoch    uint64
	created  time.Time
	sequence uint64 // the highest of this epoch
}

// moment is when a call began.
type moment struct {
	epoch    uint64
	sequence uint64
}

// begin is called before a call is sent. Calls that overlap may see any order.
func (h *history) begin() moment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return moment{epoch: h.epoch, sequence: h.sequence}
}

// wrote looks at the sequence that a message got. It reports whether the stream is
// known to have been the same from before the call until now.
func (h *history) wrote(m moment, sequence uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.epoch != h.epoch {
		return false // the answer may be of either epoch
	}
	if sequence <= m.sequence {
		h.epoch++
		h.sequence = sequence
		return false
	}
	h.sequence = max(h.sequence, sequence)
	return true
}

// saw looks at what the stream says of itself: when it was created, and its last
// sequence. It reports whether it is another one than before, or else whether that
// is in doubt: of several servers a leader that was deposed and does not know may
// tell an old sequence. Then what a message gets decides; see wrote.
func (h *history) saw(m moment, created time.Time, last uint64, oneServer bool) (another, doubtful bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.epoch != h.epoch {
		return false, false // a later answer has told already
	}
	behind := !h.created.IsZero() && last < m.sequence
	another = !h.created.IsZero() && !created.Equal(h.created) || behind && oneServer
	if another {
		h.epoch++
		h.sequence = last
	}
	h.created = created
	h.sequence = max(h.sequence, last)
	return another, behind && !another
}

// now returns the number of the epoch.
func (h *history) now() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.epoch
}
