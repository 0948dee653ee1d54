package nats

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// A sweep begins so many times while a record is idle, but not more often
	// than every leastSweep nor less often than every mostSweep.
	sweepsPerForget = 10
	leastSweep      = time.Second
	mostSweep       = 5 * time.Minute

	// removals is how many records are removed at a time.
	removals = 64
)

// sweepAll forgets idle records that were left alone for long, of this gateway or of
// any. The stream is the list of them: it has the last message of each lock, in the
// order in which they were written. Gateways take turns by a key that expires before
// the next sweep, so that one of them does the work. Each looks whether the bucket's
// settings are still safe, of whose change nothing tells. It ends with the store.
func (s *Store) sweepAll() {
	var done sweep
	for sleep(s.ctx, s.sweepEvery()) {
		s.lookAgain()
		if s.takeTurn() {
			done = s.sweep(done)
		}
	}
}

// lookAgain has the connection see to the bucket if it is not as it should be.
func (s *Store) lookAgain() {
	ctx, cancel := context.WithTimeout(s.ctx, s.requestTimeout())
	defer cancel()
	if c, l, err := s.link(ctx); err == nil && s.look(ctx, l) != nil {
		c.suspect()
	}
}

func (s *Store) sweepEvery() time.Duration {
	return min(max(s.options.Load().ForgetAfter/sweepsPerForget, leastSweep), mostSweep)
}

// takeTurn reports whether no gateway has swept for some time.
func (s *Store) takeTurn() bool {
	ctx, cancel := context.WithTimeout(s.ctx, s.requestTimeout())
	defer cancel()
	turn := message(s.keys.sweep(), nil, lastIs(0), seconds(s.sweepEvery()/2))
	_, err := s.publish(ctx, turn)
	return err == nil
}

// sweep is how far a gateway has looked: what is left below this sequence stays. A
// record that changes gets another.
type sweep struct {
	epoch uint64
	next  uint64
}

// sweep goes on where the last one ended, up to what was written not long enough
// ago. If something fails the next sweep begins there. A page of an old state does no
// harm: a record that has changed is not removed, and comes again further on.
func (s *Store) sweep(done sweep) sweep {
	if epoch := s.history.now(); done.epoch != epoch || done.next == 0 {
		done = sweep{epoch: epoch, next: 1}
	}
	before := s.clock.now().Add(-s.options.Load().ForgetAfter)
	for paged := true; s.ctx.Err() == nil; {
		page := s.sweepPage(done.next, &paged)
		if len(page) == 0 {
			return done
		}
		next, ended := done.next, false
		var idle []stored
		for _, m := range page {
			if ended = m.time.After(before); ended {
				break
			}
			next = m.sequence + 1
			if m.live() && m.header.Get(headerIdle) != "" {
				idle = append(idle, m)
			}
		}
		if !s.forget(idle) {
			return done
		}
		if done.next = next; ended {
			return done
		}
	}
	return done
}

// sweepPage reads messages from a sequence on, of whatever key: to find one of a lock
// the server would look at all subjects that there are, each time. It returns none if
// that fails, too.
func (s *Store) sweepPage(from uint64, paged *bool) []stored {
	ctx, cancel := context.WithTimeout(s.ctx, s.requestTimeout())
	defer cancel()
	page, err := s.nextPage(ctx, from, ">", paged)
	if err != nil {
		return nil
	}
	return page
}

// forget removes records, each if it has not changed, and reports whether all is
// done that can be.
func (s *Store) forget(idle []stored) bool {
	var group errgroup.Group
	group.SetLimit(removals)
	for _, m := range idle {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(s.ctx, s.requestTimeout())
			defer cancel()
			_, err := s.publish(ctx, removal(m.subject, lastIs(m.sequence)))
			if conflict, busy := conflicts(err); conflict && !busy {
				return nil // it is used
			}
			return err
		})
	}
	return group.Wait() == nil
}
