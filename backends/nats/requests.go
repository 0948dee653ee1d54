package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// repeatWait is how long to wait before something is sent again that was
	// certainly not carried out.
	repeatWait = 50 * time.Millisecond

	// busyAttempts is how often a message is sent again that was refused since
	// another write of its key was under way, and busyWait how long is waited at
	// most before each.
	busyAttempts = 8
	busyWait     = 8 * time.Millisecond

	// readPatience is how long a read may take before it is sent again: while
	// there is no leader nobody answers.
	readPatience = time.Second

	// swapPatience is how long the answer to a swap is awaited before it is sent
	// again: one that was sent to a leader that died is never answered.
	swapPatience = time.Second
)

// Headers of messages.
const (
	headerOperation = "KV-Operation" // of a bucket: what is removed has one
	headerIdle      = "Lockgateway-Idle"
	headerSequence  = "Nats-Sequence" // of what is published again
	headerSize      = "Nats-Msg-Size" // likewise, if that is headers only
)

// link is a connection as long as it lasts. Another one is another link.
type link struct {
	conn *nats.Conn

	mu      sync.Mutex // guards what follows
	waiting map[*waiter]struct{}
}

// waiter waits for an answer, or is told that none comes.
type waiter struct {
	subject   string // that was sent to
	cancel    context.CancelFunc
	forbidden atomic.Bool
}

func newLink(conn *nats.Conn) *link {
	return &link{conn: conn, waiting: make(map[*waiter]struct{})}
}

// request sends a message and returns the answer, for which it waits so long at most;
// then the error is errSilence. If the connection has broken it is not sent; if it
// breaks, there is no use in waiting.
func (l *link) request(ctx context.Context, m *nats.Msg, patience time.Duration) (*nats.Msg, error) {
	if l.conn.IsClosed() {
		return nil, &unsentError{errBroke}
	}
	attempt, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w := l.enter(m.Subject, cancel)
	defer l.leave(w)
	answer, err := l.conn.RequestMsgWithContext(attempt, m)
	switch {
	case err == nil:
		return answer, nil
	case w.forbidden.Load():
		return nil, errNoPermission
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected):
		return nil, errBroke
	case attempt.Err() != nil && ctx.Err() == nil:
		return nil, errSilence
	}
	return nil, err
}

// enter has somebody told by cancel that nothing sent to the subject passes, until
// leave.
func (l *link) enter(subject string, cancel context.CancelFunc) *waiter {
	w := &waiter{subject: subject, cancel: cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[w] = struct{}{}
	return w
}

func (l *link) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, w)
}

// forbids tells those who wait for an answer about a subject that the server let
// nothing pass to it.
func (l *link) forbids(subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.waiting {
		if w.subject == subject {
			w.forbidden.Store(true)
			w.cancel()
		}
	}
}

// condition is what a message is stored under only: that its key has this last
// sequence. nil is none; 0 means that there is nothing of the key.
type condition *uint64

func lastIs(sequence uint64) condition { return &sequence }

// message makes one that is to be stored, for so many seconds, or for good if 0.
func message(subject string, data []byte, when condition, ttl int64) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	if when != nil {
		m.Header[nats.ExpectedLastSubjSeqHdr] = []string{strconv.FormatUint(*when, 10)}
	}
	if ttl > 0 {
		m.Header[nats.MsgTTLHdr] = []string{strconv.FormatInt(ttl, 10)}
	}
	return m
}

// removal makes a message that stands for something removed, until it expires
// itself. Buckets keep one message for each key, so it takes the place of what was
// there.
func removal(subject string, when condition) *nats.Msg {
	m := message(subject, nil, when, seconds(markerTTL))
	m.Header[headerOperation] = []string{"PURGE"}
	return m
}

// publish has a message stored and returns its sequence. The error wraps
// ErrNotApplied if the message was not stored and never will be; see send.
func (s *Store) publish(ctx context.Context, m *nats.Msg) (sequence uint64, err error) {
	sequence, certain, err := s.send(ctx, m, s.requestTimeout())
	if err != nil && certain {
		err = notApplied(err)
	}
	return sequence, err
}

// send sends a message that is to be stored. If it was refused for a reason that
// passes it is sent again, which does no harm: as its condition is about the key that
// it changes, it is stored once at most. Otherwise it is sent once, and the answer
// awaited no longer than patience: the error is errSilence if there was time left.
// Certain tells whether an error means that it was not stored and never will be; see
// conflicts, too.
func (s *Store) send(ctx context.Context, m *nats.Msg, patience time.Duration) (sequence uint64, certain bool, err error) {
	if s.keys.gateway != "" {
		m.Subject = s.keys.gateway + m.Subject
	}
	certain = true
	for busy := 0; ; {
		sequence, err = s.publishOnce(ctx, m, patience)
		if err == nil {
			return sequence, true, nil
		}
		certain = certain && refused(err, s.oneServer.Load())
		wait := repeatWait
		switch _, isBusy := conflicts(err); {
		case isBusy && busy < busyAttempts:
			busy++
			wait = min(time.Millisecond<<busy, busyWait)
			wait = wait/2 + rand.N(wait/2) //nolint:gosec // Not a secret.
		case !passes(err):
			return 0, certain, explain(err)
		}
		if !sleep(ctx, wait) {
			return 0, certain, explain(err)
		}
	}
}

func (s *Store) publishOnce(ctx context.Context, m *nats.Msg, patience time.Duration) (uint64, error) {
	c, l, err := s.link(ctx)
	if err != nil {
		return 0, err
	}
	sequence, err := s.publishOn(ctx, l, m, patience)
	if errors.Is(err, nats.ErrNoResponders) {
		c.suspect()
	}
	return sequence, err
}

func (s *Store) publishOn(ctx context.Context, l *link, m *nats.Msg, patience time.Duration) (uint64, error) {
	begun := s.history.begin()
	answer, err := l.request(ctx, m, patience)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Error    *jetstream.APIError `json:"error"`
		Stream   string              `json:"stream"`
		Sequence uint64              `json:"seq"`
	}
	switch err := json.Unmarshal(answer.Data, &ack); {
	case err != nil:
		return 0, fmt.Errorf("NATS: an answer that cannot be read: %w", err)
	case ack.Error != nil:
		return 0, ack.Error
	case ack.Stream != s.keys.stream || ack.Sequence == 0:
		return 0, fmt.Errorf("NATS: the stream %q took what is for the stream %q", ack.Stream, s.keys.stream)
	case !s.history.wrote(begun, ack.Sequence):
		return 0, errAnotherHistory
	}
	return ack.Sequence, nil
}

// stored is the last message of a key, as far as the answer is not old.
type stored struct {
	subject  string
	sequence uint64 // 0: there is none
	data     []byte
	header   nats.Header
	time     time.Time
}

// removed reports whether the message stands for something removed.
func (m *stored) removed() bool { return m.sequence != 0 && m.header.Get(headerOperation) != "" }

// live reports whether there is something.
func (m *stored) live() bool { return m.sequence != 0 && !m.removed() }

// follows reports whether the message was published on condition that its key had
// this last sequence.
func (m *stored) follows(sequence uint64) bool {
	return m.header.Get(nats.ExpectedLastSubjSeqHdr) == strconv.FormatUint(sequence, 10)
}

// last reads the last message of a key, from the stream's leader. One that was
// deposed and does not know may show what was before; and whatever goes wrong when
// it looks, it says that there is nothing.
func (s *Store) last(ctx context.Context, subject string) (stored, error) {
	return s.read(ctx, map[string]any{"last_by_subj": subject})
}

// read reads a message from the stream's leader.
func (s *Store) read(ctx context.Context, what map[string]any) (stored, error) {
	body, err := json.Marshal(what)
	if err != nil {
		return stored{}, err
	}
	for {
		found, err := s.readOnce(ctx, body)
		again := errors.Is(err, errBroke) || errors.Is(err, errSilence) || passes(err)
		if err == nil || !again || !sleep(ctx, repeatWait) {
			return found, explain(err)
		}
	}
}

func (s *Store) readOnce(ctx context.Context, body []byte) (stored, error) {
	_, l, err := s.link(ctx)
	if err != nil {
		return stored{}, err
	}
	answer, err := l.request(ctx, &nats.Msg{Subject: s.keys.api("STREAM.MSG.GET"), Data: body}, readPatience)
	if err != nil {
		return stored{}, err
	}
	var reply struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(answer.Data, &reply); err != nil {
		return stored{}, fmt.Errorf("NATS: an answer that cannot be read: %w", err)
	}
	if reply.Error != nil {
		if reply.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return stored{}, nil
		}
		return stored{}, reply.Error
	}
	m := reply.Message
	found := stored{subject: m.Subject, sequence: m.Sequence, data: m.Data, time: m.Time}
	if len(m.Header) > 0 {
		if found.header, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			return stored{}, fmt.Errorf("NATS: headers that cannot be read: %w", err)
		}
	}
	return found, nil
}

// forbidden returns the subject that a server let nothing pass to, of which it
// tells in words.
func forbidden(err error) (subject string, ok bool) {
	_, rest, _ := strings.Cut(err.Error(), `Permissions Violation for Publish to "`)
	subject, _, ok = strings.Cut(rest, `"`)
	return subject, ok
}
