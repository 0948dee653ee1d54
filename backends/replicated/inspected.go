package replicated

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// inspected is a record that somebody looks at.
type inspected struct {
	key  lock.Key
	rec  *record
	left map[uint64]time.Duration // of its expiring keys, as far as they were looked at
	err  error                    // why it cannot be read
}

func inspect(stored string, e Entry) *inspected {
	rec, err := decode(e.Value, e.Revision)
	name := stored
	if err == nil && strings.HasPrefix(stored, hashedKey) {
		name = rec.name
	}
	var key lock.Key
	if err == nil {
		key, err = lock.ParseKey(name)
	}
	if err == nil {
		if again, _ := storeKey(key); again != stored {
			err = fmt.Errorf("%w: it is of another lock", errForeign)
		}
	}
	if err != nil {
		return &inspected{err: &lock.RecordError{Key: stored, Err: err}}
	}
	return &inspected{key: key, rec: rec}
}

// inspection is what is known of the sessions and keys in the records that somebody
// looks at.
type inspection struct {
	b     *Backend
	ended map[SessionID]bool // nil: nobody asked which there are
}

// freshen takes out of records what is there no more.
func (i *inspection) freshen(ctx context.Context, list []*inspected) error {
	var keys []uint64
	for _, l := range list {
		if l.err != nil {
			continue
		}
		if err := i.prune(ctx, l.rec); err != nil {
			return err
		}
		keys = append(keys, l.doubtfulKeys()...)
	}
	if len(keys) == 0 {
		return nil
	}
	remaining, err := i.b.store.Remaining(ctx, keys)
	if err != nil {
		return err
	}
	left := make(map[uint64]time.Duration, len(keys))
	for n, key := range keys {
		left[key] = remaining[n]
	}
	for _, l := range list {
		l.expire(left)
	}
	return nil
}

// prune takes the places of ended sessions out. Those that are not in the list of
// sessions may have begun since it was made, so it is asked for each once.
func (i *inspection) prune(ctx context.Context, rec *record) error {
	if len(rec.queue) == 0 {
		return nil
	}
	if i.ended == nil {
		i.ended = make(map[SessionID]bool)
		live, err := i.b.store.Sessions(ctx)
		if err != nil {
			return err
		}
		for _, s := range live {
			i.ended[s.ID] = false
		}
	}
	var failure error
	rec.prune(func(s SessionID) bool {
		ended, known := i.ended[s]
		if !known && failure == nil {
			if ended, failure = i.b.store.SessionEnded(ctx, s); failure == nil {
				i.ended[s] = ended
			}
		}
		return ended && failure == nil
	})
	return failure
}

// doubtfulKeys returns the keys that may have expired. Those whose slots are younger
// than the time that they were given have not, if the clocks of gateways are right;
// if not, a list shows a slot for too long.
func (l *inspected) doubtfulKeys() (keys []uint64) {
	for _, h := range l.rec.holders {
		if h.expiring != 0 && time.Since(time.UnixMilli(h.since)) >= h.ttl {
			keys = append(keys, h.expiring)
		}
	}
	return keys
}

func (l *inspected) expire(left map[uint64]time.Duration) {
	if l.err != nil {
		return
	}
	l.left = left
	for _, h := range slices.Clone(l.rec.holders) {
		if d, asked := left[h.expiring]; asked && d <= 0 {
			l.rec.expire(h.expiring)
		}
	}
}
