package etcd

import (
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// history watches whether the cluster stays the same and goes forward. One that
// was made anew has another ID. One that was restored from a backup may have the
// same, if its members are called the same; but its revision is lower than it
// was. (A backup restored with a raised revision looks like nothing at all.)
type history struct {
	mu       sync.Mutex // guards what follows
	epoch    uint64
	cluster  uint64
	revision int64 // the highest of this epoch
}

// moment is when a call began.
type moment struct {
	epoch    uint64
	revision int64
}

// begin is called before a linearizable call is sent: its answer must not be
// older than what was seen before. Calls that overlap may see any order.
func (h *history) begin() moment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return moment{epoch: h.epoch, revision: h.revision}
}

// check looks at the answer to a linearizable call. It reports whether the
// cluster is known to have been the same from before the call until now.
func (h *history) check(m moment, header *pb.ResponseHeader) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.epoch != h.epoch {
		return false // the answer may be of either epoch
	}
	another := h.cluster != 0 && header.GetClusterId() != h.cluster
	if another || header.GetRevision() < m.revision {
		h.epoch++
		h.cluster, h.revision = header.GetClusterId(), header.GetRevision()
		return false
	}
	h.cluster = header.GetClusterId()
	h.revision = max(h.revision, header.GetRevision())
	return true
}

// now returns the number of the epoch.
func (h *history) now() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.epoch
}
