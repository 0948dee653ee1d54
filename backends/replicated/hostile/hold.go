package hostile

import (
	"context"
	"errors"
	"slices"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

var errHeldBack = errors.New("the test held it back")

// Held is a hold on one swap, for tests that script an exact order of events.
type Held struct {
	cluster  *Cluster
	match    func(replicated.Swap) bool
	caught   chan struct{} // closed once request is set
	answered chan struct{} // closed once res and err are set

	// The following is guarded by cluster.mu.
	request *request
	done    bool // released
	told    bool // answered is closed
	res     replicated.SwapResult
	err     error
}

// Hold holds the next swap that match accepts as it arrives at the cluster:
// nothing happens to it until Release, whatever the other faults. Match must
// not call the cluster.
func (c *Cluster) Hold(match func(replicated.Swap) bool) *Held {
	h := &Held{cluster: c, match: match, caught: make(chan struct{}), answered: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = append(c.holds, h)
	return h
}

// Caught is closed once a swap is held.
func (h *Held) Caught() <-chan struct{} { return h.caught }

// Swap returns the swap that is held, once one is.
func (h *Held) Swap() replicated.Swap {
	h.cluster.mu.Lock()
	defer h.cluster.mu.Unlock()
	if h.request == nil {
		panic("hostile: no swap is held yet")
	}
	return h.request.Swap
}

// Lose tells the caller of the swap that it failed, which leaves the swap in
// doubt, and holds it on. It is for swaps that are released long after.
func (h *Held) Lose() {
	h.cluster.mu.Lock()
	defer h.cluster.mu.Unlock()
	if h.request == nil {
		panic("hostile: no swap is held yet")
	}
	h.tell(replicated.SwapResult{}, inDoubt(h.request.Swap, errReset))
}

// Release ends the hold. With apply the swap is carried out now, which may
// refuse it; without, it never is. With reply the caller, unless it has left or
// was told, learns what became of it; without, it learns that the connection
// broke. If no swap has been caught none will be.
func (h *Held) Release(apply, reply bool) {
	c := h.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = slices.DeleteFunc(c.holds, func(o *Held) bool { return o == h })
	if h.request == nil || h.done {
		return
	}
	h.done = true
	res, err := replicated.SwapResult{}, notApplied(h.request.Swap, errHeldBack)
	if apply {
		res, err = c.swap(h.request)
	}
	if !reply {
		res, err = replicated.SwapResult{}, inDoubt(h.request.Swap, errReset)
	}
	h.tell(res, err)
}

// tell answers the caller of the swap, once. The caller holds c.mu.
func (h *Held) tell(res replicated.SwapResult, err error) {
	if !h.told {
		h.told, h.res, h.err = true, res, err
		close(h.answered)
	}
}

// catch finds the hold that a swap runs into, if any.
func (c *Cluster) catch(r *request) *Held {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.holds, func(h *Held) bool { return h.match(r.Swap) })
	if i < 0 {
		return nil
	}
	h := c.holds[i]
	c.holds = slices.Delete(c.holds, i, i+1)
	r.fate = spared // nothing befalls it but what the test decides
	h.request = r
	close(h.caught)
	return h
}

// await waits for the answer to the swap that is held.
func (h *Held) await(ctx context.Context, s *store) (replicated.SwapResult, error) {
	select {
	case <-h.answered:
		return h.res, h.err
	case <-ctx.Done():
		return replicated.SwapResult{}, inDoubt(h.request.Swap, ctx.Err())
	case <-s.closed:
		return replicated.SwapResult{}, inDoubt(h.request.Swap, errClosed)
	}
}

// Owns reports whether a session is one of a gateway's. It may be called while
// a swap is matched.
func Owns(gateway replicated.Store, of replicated.Session) bool {
	n, ok := of.(*session)
	return ok && n.store == gateway
}
