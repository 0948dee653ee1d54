package nats

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// A page of a list is so many messages, or so many bytes and a message more.
const (
	pageLength = 500
	pageSize   = 4 << 20
)

// Records lists the stream. It has the last message of each lock, in the order in
// which they were written.
func (s *Store) Records(ctx context.Context, yield func(string, replicated.Entry) bool) error {
	err := s.list(ctx, s.keys.allLocks(), func(m stored) bool {
		key, ours := s.keys.lockKey(m.subject)
		return !ours || yield(key, replicated.Entry{Value: m.data, Revision: m.sequence})
	})
	if err != nil {
		return fmt.Errorf("listing the records: %w", err)
	}
	return nil
}

// Sessions lists the keys of sessions.
func (s *Store) Sessions(ctx context.Context) (sessions []replicated.SessionInfo, err error) {
	err = s.list(ctx, s.keys.allSessions(), func(m stored) bool {
		if id, ours := s.keys.sessionID(m.subject); ours {
			sessions = append(sessions, replicated.SessionInfo{ID: id, Description: string(m.data)})
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("listing the sessions: %w", err)
	}
	return sessions, nil
}

// moreRounds is how often a list goes on to what was written meanwhile.
const moreRounds = 3

// list yields the messages of the keys that a pattern matches, from the oldest on,
// but for what was removed. A key that is written meanwhile moves to the end, and so
// comes again. As writes may be faster than the list, it ends after some rounds, each
// up to what the end was when it began: a key that is rewritten all the while may
// come several times, or not at all.
func (s *Store) list(ctx context.Context, pattern string, yield func(stored) bool) error {
	paged, from := true, uint64(1)
	for round := range 1 + moreRounds {
		end, err := s.last(ctx, pattern)
		if err != nil || round > 0 && end.sequence < from {
			return err
		}
		for more := true; more; more = from <= end.sequence {
			page, err := s.nextPage(ctx, from, pattern, &paged)
			if err != nil || len(page) == 0 {
				return err
			}
			for _, m := range page {
				from = m.sequence + 1
				if m.live() && !yield(m) {
					return nil
				}
			}
		}
	}
	return nil
}

// nextPage reads the next messages from a sequence on that a pattern matches; none: the
// leader has none.
//
// Pages are read from any server that has the stream. One that is behind shows what
// was before, and too early an end: so the leader, which answers for one message at a
// time, is asked for the next one there. The same goes where pages are not to be had,
// as the bucket or the user's permissions do not provide for it: paged says whether
// they were so far.
func (s *Store) nextPage(ctx context.Context, from uint64, pattern string, paged *bool) ([]stored, error) {
	if *paged {
		page, err := s.page(ctx, from, pattern)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, explain(err)
		case len(page) > 0:
			return page, nil
		}
		*paged = err == nil
	}
	m, err := s.read(ctx, map[string]any{"seq": from, "next_by_subj": pattern})
	if err != nil || m.sequence == 0 {
		return nil, err
	}
	return []stored{m}, nil
}

// page reads the first messages from a sequence on that a pattern matches, as some
// server has them.
func (s *Store) page(ctx context.Context, from uint64, pattern string) ([]stored, error) {
	body, err := json.Marshal(map[string]any{"seq": from, "next_by_subj": pattern, "batch": pageLength, "max_bytes": pageSize})
	if err != nil {
		return nil, err
	}
	_, l, err := s.link(ctx)
	if err != nil {
		return nil, err
	}
	// Who lists may give up after a request timeout of silence; until then the leader
	// must have answered instead.
	ctx, cancel := context.WithTimeout(ctx, s.requestTimeout()/3)
	defer cancel()
	request := &nats.Msg{Subject: s.keys.api("DIRECT.GET"), Reply: l.conn.NewInbox(), Data: body}
	answers, err := l.conn.SubscribeSync(request.Reply)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answers.Unsubscribe() }() // else its connection has gone, and it, too
	defer l.leave(l.enter(request.Subject, cancel))
	if err := l.conn.PublishMsg(request); err != nil {
		return nil, err
	}
	var page []stored
	for {
		answer, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			return nil, err
		}
		switch status := answer.Header.Get("Status"); status {
		case "":
		case "204", "404": // the end of the page; there is nothing
			return page, nil
		default:
			return nil, fmt.Errorf("NATS: %s %s", status, answer.Header.Get("Description"))
		}
		m := stored{subject: answer.Header.Get("Nats-Subject"), data: answer.Data, header: answer.Header}
		m.sequence, err = strconv.ParseUint(answer.Header.Get(headerSequence), 10, 64)
		if err == nil {
			m.time, err = time.Parse(time.RFC3339Nano, answer.Header.Get("Nats-Time-Stamp"))
		}
		if err != nil {
			return nil, fmt.Errorf("NATS: an answer that cannot be read: %w", err)
		}
		page = append(page, m)
	}
}

// lockKey returns what lock made a subject of.
func (k keyspace) lockKey(subject string) (key string, ours bool) {
	encoded, ours := strings.CutPrefix(subject, k.prefix+lockToken+".")
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	return string(decoded), ours && err == nil
}

// sessionID returns what session made a subject of.
func (k keyspace) sessionID(subject string) (id replicated.SessionID, ours bool) {
	encoded, ours := strings.CutPrefix(subject, k.prefix+sessionToken+".")
	n, err := strconv.ParseUint(encoded, 16, 64)
	return replicated.SessionID(n), ours && err == nil
}

// allSessions matches the subjects of all sessions.
func (k keyspace) allSessions() string { return k.prefix + sessionToken + ".>" }
