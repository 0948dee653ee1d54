package hostile

import (
	"fmt"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// Cut cuts a gateway off: its calls hang until their contexts are done, of its
// swaps that were on their way some are applied, some are not, it gets no news,
// and its sessions run out.
func (c *Cluster) Cut(gateway replicated.Store) {
	s := c.own(gateway)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.cut = true
	for st := range c.streams {
		if st.store == s {
			st.queue = nil
		}
	}
	for _, n := range c.sessions {
		if n.store == s {
			c.runOut(n)
		}
	}
}

// Heal ends a cut, for calls that begin from now on. Followers are told that
// they missed changes; sessions that have not run out live on.
func (c *Cluster) Heal(gateway replicated.Store) {
	s := c.own(gateway)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.cut {
		return
	}
	s.cut = false
	for st := range c.streams {
		if st.store == s {
			st.resume()
		}
	}
	for _, n := range c.sessions {
		if n.store == s && n.kept && !s.ended {
			c.stop(n.out)
			n.out = nil
		}
	}
}

// own returns a gateway's store as what it is.
func (c *Cluster) own(gateway replicated.Store) *store {
	s, ok := gateway.(*store)
	if !ok || s.cluster != c {
		panic(fmt.Sprintf("hostile: %T is no store of this cluster", gateway))
	}
	return s
}
