package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// Swap publishes the record on condition that its key has the last sequence that is
// expected. If another one is there it is read.
//
// A create expects nothing, and meets nothing, or for some seconds what forgetting
// left: then it is published on condition that this is still the last.
//
// That another write of the key is under way decides nothing: the record may turn
// out as expected. The swap is sent again until it is known.
//
// Nor does a refusal by itself. After a partition of the servers two of them believe
// for a while that they lead. A message goes to both; the one that was deposed refuses
// it by what it knew, and may be heard first. So what counts is the record that is
// read: our own, if the swap was applied all the same.
func (s *Store) Swap(ctx context.Context, swap replicated.Swap) (replicated.SwapResult, error) {
	var none replicated.SwapResult
	subject := s.keys.lock(swap.Key)
	expect := swap.Expect
	alone := true // nothing that was sent before may be applied yet
	for {
		m := message(subject, swap.Value, lastIs(expect), 0)
		if swap.Idle {
			m.Header[headerIdle] = []string{"1"}
		}
		sequence, certain, err := s.send(ctx, m, swapPatience)
		if errors.Is(err, errSilence) && ctx.Err() == nil {
			alone = false
			continue // of what was sent only one can be stored
		}
		if err == nil {
			return replicated.SwapResult{Applied: true, Entry: replicated.Entry{Revision: sequence}}, nil
		}
		if conflict, _ := conflicts(err); !conflict {
			if certain && alone {
				err = notApplied(err)
			}
			return none, err
		}
		alone = false
		found, err := s.last(ctx, subject)
		if err != nil {
			return none, fmt.Errorf("reading what there is instead: %w", err)
		}
		switch {
		case found.live() && (found.follows(expect) || found.follows(swap.Expect)) && bytes.Equal(found.data, swap.Value):
			return replicated.SwapResult{Applied: true, Entry: replicated.Entry{Revision: found.sequence}}, nil
		case found.live() && found.sequence > swap.Expect:
			return replicated.SwapResult{Entry: entry(found)}, nil
		case !found.live() && swap.Expect != 0:
			// It was forgotten, or all were; unless the read is old.
			if gone, err := s.isGone(ctx, found, subject, swap.Expect); gone || err != nil {
				return none, err
			}
		case found.sequence != expect && swap.Expect == 0:
			expect = found.sequence
			continue // at once
		}
		// What was read is old, or the other write not done.
		if !sleep(ctx, busyWait) {
			return none, fmt.Errorf("NATS: another write of the lock is under way: %w", ctx.Err())
		}
	}
}

// isGone makes sure that a record is gone of which a read shows none, by taking its
// place: then no swap that expects a revision can be applied any more. It looks
// whether the bucket is still the one from before; if it took the place, it does not
// depend on that.
func (s *Store) isGone(ctx context.Context, found stored, subject string, revision uint64) (bool, error) {
	taken := found.sequence < revision
	if taken {
		_, _, err := s.send(ctx, removal(subject, lastIs(found.sequence)), s.requestTimeout())
		if conflict, _ := conflicts(err); conflict {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("finding out whether a record is gone: %w", err)
		}
	}
	_, l, err := s.link(ctx)
	if err == nil {
		err = s.look(ctx, l)
	}
	if err != nil && !taken {
		return false, fmt.Errorf("finding out whether the bucket is the one from before: %w", err)
	}
	return true, nil
}

// Get reads a record from the stream's leader.
func (s *Store) Get(ctx context.Context, key string) (replicated.Entry, error) {
	found, err := s.last(ctx, s.keys.lock(key))
	if err != nil {
		return replicated.Entry{}, fmt.Errorf("reading a record: %w", err)
	}
	return entry(found), nil
}

// entry returns the record that a message has.
func entry(m stored) replicated.Entry {
	if !m.live() {
		return replicated.Entry{}
	}
	return replicated.Entry{Value: m.data, Revision: m.sequence}
}
