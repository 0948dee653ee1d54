package hostile

import (
	"maps"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// Snapshot is a backup of a cluster.
type Snapshot struct {
	revision uint64
	records  map[string]*record
	expiring map[uint64]expiringKey
	sessions map[replicated.SessionID]bool // those that lived
}

// Snapshot makes a backup.
func (c *Cluster) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &Snapshot{
		revision: c.revision,
		records:  maps.Clone(c.records),
		expiring: make(map[uint64]expiringKey),
		sessions: make(map[replicated.SessionID]bool),
	}
	for id, k := range c.expiring {
		if k.live() {
			b.expiring[id] = *k
		}
	}
	for id, n := range c.sessions {
		b.sessions[id] = !n.ended
	}
	return b
}

// Restore takes the cluster back to a backup, which begins a new epoch:
// revisions are used again, swaps on their way do not arrive, sessions that the
// backup does not know have ended, and keys expire after their full time. A
// backup made before anything was written makes a new, empty cluster.
func (c *Cluster) Restore(b *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.revision = b.revision
	c.records = maps.Clone(b.records)
	c.history = make(map[string][]replicated.Entry)
	c.expiring = make(map[uint64]*expiringKey)
	for id, k := range b.expiring {
		k.due = time.Now().Add(k.ttl)
		c.expiring[id] = &k
	}
	for id, n := range c.sessions {
		if !b.sessions[id] {
			c.end(n)
		}
	}
	for st := range c.streams {
		if !st.store.cut {
			st.resume()
		}
	}
}
