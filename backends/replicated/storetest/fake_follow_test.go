package storetest

import (
	"context"
	"strings"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// fakeStream is one call of Follow or FollowSessions.
type fakeStream struct {
	b      *fake
	key    string
	notify func(replicated.Event)
	ended  func(replicated.SessionID)
	queue  []func() // guarded by mu
	wake   chan struct{}
}

func (b *fake) Follow(ctx context.Context, key string, notify func(replicated.Event)) {
	st := &fakeStream{b: b, key: b.name(key), notify: notify, wake: make(chan struct{}, 1)}
	if b.fault != neverMissed {
		st.queue = append(st.queue, func() { notify(replicated.Event{Missed: true}) })
		st.wake <- struct{}{}
	}
	st.begin(ctx)
}

func (b *fake) FollowSessions(ctx context.Context, ended func(replicated.SessionID)) {
	(&fakeStream{b: b, ended: ended, wake: make(chan struct{}, 1)}).begin(ctx)
}

func (st *fakeStream) begin(ctx context.Context) {
	b := st.b
	if b.fault == followsOn && st.notify != nil || b.fault == announcesOn && st.ended != nil {
		ctx = context.WithoutCancel(ctx)
	}
	b.mu.Lock()
	b.streams[st] = true
	b.mu.Unlock()
	b.running.Go(func() {
		for {
			b.mu.Lock()
			calls := st.queue
			st.queue = nil
			b.mu.Unlock()
			for _, call := range calls {
				if ctx.Err() == nil {
					call()
				}
			}
			select {
			case <-st.wake:
			case <-b.stop: // where the fault is that Close does not end it
				return
			case <-b.closed:
				return
			case <-ctx.Done():
				return
			}
		}
	})
}

// announce tells of a record. mu is held.
func (d *fakeData) announce(by *fake, k string) {
	e := d.records[k]
	if d.fault == tellsOld {
		e.Value = d.old[k].Value
	}
	for st := range d.streams {
		if st.notify == nil || st.key != k && (d.fault != followsPrefix || !strings.HasPrefix(k, st.key)) {
			continue
		}
		if d.fault == tellsNothing || d.fault == tellsItself && st.b != by {
			continue
		}
		if d.fault == overlaps {
			go st.notify(replicated.Event{Entry: e})
			go st.notify(replicated.Event{Entry: e})
		}
		st.push(func() { st.notify(replicated.Event{Entry: e}) })
	}
}

func (st *fakeStream) push(call func()) {
	st.queue = append(st.queue, call)
	select {
	case st.wake <- struct{}{}:
	default:
	}
}
