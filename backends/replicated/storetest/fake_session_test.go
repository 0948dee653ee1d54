package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

const fakeSessionTTL = 200 * time.Millisecond

type fakeSession struct {
	b      *fake
	id     replicated.SessionID
	text   string
	done   chan struct{}
	ended  bool // guarded by b.mu, like the next
	fenced bool
}

func (b *fake) OpenSession(ctx context.Context, description string) (replicated.Session, error) {
	if err := b.context(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lastID++; b.fault == repeatsSessionID {
		b.lastID = 1
	}
	s := &fakeSession{b: b, id: replicated.SessionID(b.lastID), text: description, done: make(chan struct{})}
	b.sessions[s.id] = s
	b.opened = append(b.opened, s)
	if b.fault == losesSessions {
		time.AfterFunc(fakeSessionTTL, s.runOut)
	}
	if b.fault == announcesAll {
		b.announceEnd(s)
	}
	return s, nil
}

func (*fake) SessionTTL() time.Duration { return fakeSessionTTL }

func (b *fake) SessionEnded(ctx context.Context, id replicated.SessionID) (bool, error) {
	if err := b.context(ctx); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[id]
	return s == nil || s.ended && b.fault != keepsEnded || b.fault == takesAllForEnded, nil
}

func (b *fake) Sessions(ctx context.Context) (list []replicated.SessionInfo, err error) {
	if err := b.context(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sessions {
		if !s.ended || b.fault == listsEnded {
			list = append(list, replicated.SessionInfo{ID: s.id, Description: s.text})
		}
	}
	if b.fault == listsOwn {
		list = slices.DeleteFunc(list, func(i replicated.SessionInfo) bool { return b.sessions[i.ID].b != b })
	}
	return list, nil
}

func (s *fakeSession) runOut() {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.end()
}

// end ends the session. mu is held.
func (s *fakeSession) end() {
	if s.ended {
		return
	}
	s.ended = true
	if s.b.fault != keepsDoneOpen {
		close(s.done)
	}
	s.b.announceEnd(s)
}

// announceEnd tells of the end of a session. mu is held.
func (b *fake) announceEnd(s *fakeSession) {
	for st := range b.streams {
		if st.ended != nil && b.fault != announcesNothing {
			st.push(func() { st.ended(s.id) })
			for id := range b.sessions {
				if b.fault == announcesAll {
					st.push(func() { st.ended(id) })
				}
			}
		}
	}
}

func (s *fakeSession) ID() replicated.SessionID { return s.id }

func (s *fakeSession) Done() <-chan struct{} { return s.done }

func (s *fakeSession) Fence(ctx context.Context) error {
	if err := s.b.context(ctx); err != nil {
		return err
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	switch {
	case s.b.fault == forgetsDescription:
		s.text = ""
	case s.b.fault == failsFence:
		return errors.New("no fence here")
	case s.ended && s.b.fault != fencesEnded:
		return replicated.ErrSessionEnded
	case s.b.fault == fencesFuture:
		s.fenced = true
	}
	return nil
}

func (s *fakeSession) End(ctx context.Context) error {
	if err := s.b.context(ctx); err != nil {
		return err
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.b.fault == endsAll {
		for _, o := range s.b.sessions {
			o.end()
		}
	}
	s.end()
	return nil
}
