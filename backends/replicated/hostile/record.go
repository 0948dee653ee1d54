package hostile

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// remembered is how many states of a record old reads are drawn from.
const remembered = 8

// record is a record as it is.
type record struct {
	value    []byte // never changed in place
	revision uint64
}

func (r *record) entry() replicated.Entry {
	if r == nil {
		return replicated.Entry{}
	}
	return replicated.Entry{Value: bytes.Clone(r.value), Revision: r.revision}
}

// Record returns a record as it is, and counts as no call.
func (c *Cluster) Record(key string) replicated.Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.records[key].entry()
}

// Put makes value the record of key, as a stranger would: it may be anything.
func (c *Cluster) Put(key string, value []byte) replicated.Entry {
	checkKey(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(key, bytes.Clone(value))
	return c.records[key].entry()
}

// Forget deletes a record at once, which a store may only do to one that has
// been idle for long: as far as it knows there never was one.
func (c *Cluster) Forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
}

// set makes value the record of key. The caller holds c.mu.
func (c *Cluster) set(key string, value []byte) {
	c.revision++
	c.records[key] = &record{value: value, revision: c.revision}
	c.changed(key)
}

// remove deletes a record, if there is one. The caller holds c.mu.
func (c *Cluster) remove(key string) {
	if c.records[key] == nil {
		return
	}
	c.revision++
	delete(c.records, key)
	c.changed(key)
}

// changed remembers and announces the new state of a record. The caller holds
// c.mu.
func (c *Cluster) changed(key string) {
	h := c.history[key]
	if h == nil {
		h = []replicated.Entry{{}}
	}
	h = append(h, c.records[key].entry())
	if len(h) > remembered {
		h = h[1:]
	}
	c.history[key] = h
	c.announce(key)
}

// read returns a record as the fate of the call will have it. The caller holds
// c.mu.
func (c *Cluster) read(key string, f fate) replicated.Entry {
	h := c.history[key]
	if len(h) == 0 || c.kind == Strict || !c.befalls(f.stale, c.faults.Stale) {
		return c.records[key].entry()
	}
	e := h[int(f.age*float64(len(h)))]
	e.Value = bytes.Clone(e.Value)
	return e
}

// checkKey panics on what is no key.
func checkKey(key string) {
	if key == "" || len(key) > replicated.MaxKeyLength || !utf8.ValidString(key) {
		panic(fmt.Sprintf("hostile: %q is no key", key))
	}
}
