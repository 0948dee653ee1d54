package nats

import (
	"context"
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
func (s *Store) Swap(ctx context.Context, swap replicated.Swap) (replicated.SwapResult, error) {
	var none replicated.SwapResult
	subject := s.keys.lock(swap.Key)
	expect := swap.Expect
	for {
		m := message(subject, swap.Value, lastIs(expect), 0)
		if swap.Idle {
			m.Header[headerIdle] = []string{"1"}
		}
		sequence, err := s.publish(ctx, m)
		if err == nil {
			return replicated.SwapResult{Applied: true, Entry: replicated.Entry{Revision: sequence}}, nil
		}
		if conflict, _ := conflicts(err); !conflict {
			return none, err
		}
		found, err := s.last(ctx, subject)
		if err != nil {
			return none, notApplied(fmt.Errorf("reading what there is instead: %w", err))
		}
		switch {
		case found.live() && found.sequence != swap.Expect:
			return replicated.SwapResult{Entry: entry(found)}, nil
		case !found.live() && swap.Expect != 0:
			// It was forgotten; or all were.
			if err := s.recheck(ctx); err != nil {
				return none, notApplied(err)
			}
			return none, nil
		case found.sequence != expect && swap.Expect == 0:
			expect = found.sequence
			continue // at once
		}
		// What was read is as expected: it is old, or the other write not done.
		if !sleep(ctx, busyWait) {
			return none, notApplied(fmt.Errorf("NATS: another write of the lock is under way: %w", ctx.Err()))
		}
	}
}

// recheck looks whether the bucket is still the one from before.
func (s *Store) recheck(ctx context.Context) error {
	_, l, err := s.link(ctx)
	if err != nil {
		return err
	}
	return s.attach(ctx, l.conn)
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
