package hostile

import (
	"bytes"
	"context"
	"fmt"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// maxValue is 64 KiB and a little.
const maxValue = 68 << 10

// request is a swap on its way, which may be longer than its caller waits.
type request struct {
	replicated.Swap
	store   *store
	session *session
	fate    fate
	fence   uint64 // of the session, when the swap was sent
	epoch   uint64
}

// Swap implements replicated.Store.
func (s *store) Swap(ctx context.Context, swap replicated.Swap) (replicated.SwapResult, error) {
	r := s.request(swap)
	f, err := s.begin(ctx)
	if err != nil {
		return replicated.SwapResult{}, notApplied(swap, err)
	}
	r.fate = f
	if err := s.travel(ctx, f.there); err != nil {
		if f.arrives {
			s.cluster.applyLater(r)
		}
		return replicated.SwapResult{}, inDoubt(swap, err)
	}
	if h := s.cluster.catch(r); h != nil {
		return h.await(ctx, s)
	}
	switch f.strike {
	case refuse:
		return replicated.SwapResult{}, notApplied(swap, errUnavailable)
	case late:
		s.cluster.applyLater(r)
		return replicated.SwapResult{}, inDoubt(swap, f.doubt)
	case lose:
		return replicated.SwapResult{}, inDoubt(swap, f.doubt)
	case none, dropReply:
	}
	res, answer := s.cluster.apply(r)
	if f.strike == dropReply {
		return replicated.SwapResult{}, inDoubt(swap, f.doubt)
	}
	if err := s.travel(ctx, f.back); err != nil {
		return replicated.SwapResult{}, inDoubt(swap, err)
	}
	return res, answer
}

// request checks a swap and notes the moment at which it is sent.
func (s *store) request(swap replicated.Swap) *request {
	checkKey(swap.Key)
	n, ok := swap.Session.(*session)
	if !ok {
		panic(fmt.Sprintf("hostile: the swap of %q has a %T for a session", swap.Key, swap.Session))
	}
	if len(swap.Value) > maxValue {
		panic(fmt.Sprintf("hostile: the swap of %q has a value of %d bytes", swap.Key, len(swap.Value)))
	}
	swap.Value = bytes.Clone(swap.Value)
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	s.cluster.counts.Swaps++
	return &request{Swap: swap, store: s, session: n, fence: n.fence, epoch: s.cluster.epoch}
}

// apply carries a swap out.
func (c *Cluster) apply(r *request) (replicated.SwapResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.swap(r)
}

// applyLater carries a swap out when its caller has long been told that it
// failed.
func (c *Cluster) applyLater(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.counts.Late++
	c.after(r.fate.lateBy, func() {
		c.counts.Late--
		_, _ = c.swap(r)
	})
}

// swap is the one place where a gateway changes records. The caller holds c.mu.
func (c *Cluster) swap(r *request) (replicated.SwapResult, error) {
	if r.epoch != c.epoch {
		// A connection does not outlive the cluster that it leads to, so
		// nothing arrives in a later epoch.
		return replicated.SwapResult{}, notApplied(r.Swap, errReset)
	}
	r.store.learn()
	if c.befalls(r.fate.sessionLoss, c.faults.SessionLoss) {
		c.end(r.session)
	}
	if c.kind == Strict && r.Expect == 0 {
		if r.session.ended {
			return replicated.SwapResult{}, notApplied(r.Swap, replicated.ErrSessionEnded)
		}
		if r.fence != r.session.fence {
			return replicated.SwapResult{}, notApplied(r.Swap, replicated.ErrFenced)
		}
	}
	if c.records[r.Key].entry().Revision != r.Expect {
		c.counts.Refused++
		e := c.read(r.Key, r.fate)
		if e.Revision <= r.Expect {
			e = c.records[r.Key].entry()
		}
		return replicated.SwapResult{Entry: e}, nil
	}
	if err := c.putExpiring(r.Expiring); err != nil {
		return replicated.SwapResult{}, notApplied(r.Swap, err)
	}
	c.set(r.Key, r.Value)
	c.counts.Applied++
	if r.Idle && c.befalls(r.store.dice.Float64(), c.faults.Forget) {
		c.forgetLater(r)
	}
	if c.kind == Loose && c.befalls(r.fate.falseRefusal, c.faults.FalseRefusal) {
		return replicated.SwapResult{Entry: c.records[r.Key].entry()}, nil
	}
	return replicated.SwapResult{Applied: true, Entry: replicated.Entry{Revision: c.revision}}, nil
}

// forgetLater deletes the record of an idle swap if nobody touches it. The
// caller holds c.mu.
func (c *Cluster) forgetLater(r *request) {
	revision := c.revision
	c.after(c.faults.ForgetAfter+upTo(r.store.dice, c.faults.ForgetAfter), func() {
		if now := c.records[r.Key]; now != nil && now.revision == revision && c.epoch == r.epoch {
			c.remove(r.Key)
		}
	})
}

// notApplied is the error of a swap that certainly did not happen.
func notApplied(s replicated.Swap, why error) error {
	return fmt.Errorf("swapping %q: %w: %w", s.Key, replicated.ErrNotApplied, why)
}

// inDoubt is the error of a swap that may have happened.
func inDoubt(s replicated.Swap, why error) error {
	return fmt.Errorf("swapping %q: %w", s.Key, why)
}
