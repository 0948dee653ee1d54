package caddymodule

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockgateway/lockgateway/internal/adminapi"
	"github.com/lockgateway/lockgateway/lock"
)

const (
	defaultListed = 100
	mostListed    = 10_000
)

// listJSON is a page of locks.
type listJSON struct {
	Backend string     `json:"backend"`
	Locks   []lockJSON `json:"locks"`

	// Matching is how many locks there are of the wanted kind. One that changed
	// while they were counted may count twice.
	Matching int64 `json:"matching"`

	// Next is what to ask for with after for the next page; empty: this is the last.
	Next string `json:"next,omitempty"`

	// Unreadable is how many records of the store cannot be read.
	Unreadable int64 `json:"unreadable,omitempty"`
}

// lockJSON is a lock in short.
type lockJSON struct {
	Lock         string    `json:"lock"`
	Held         int64     `json:"held"`
	Waiting      int64     `json:"waiting"`
	HeldSince    time.Time `json:"heldSince,omitzero"`
	WaitingSince time.Time `json:"waitingSince,omitzero"`
}

func describeState(s lock.State) lockJSON {
	return lockJSON{Lock: s.Key.Name(), Held: s.Held, Waiting: s.Waiting, HeldSince: shown(s.HeldSince), WaitingSince: shown(s.WaitingSince)}
}

// shown is a time as answers have it.
func shown(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func adminLocks(r *http.Request, b *openBackend) (any, error) {
	q, err := parseListQuery(r)
	if err != nil {
		return nil, err
	}
	p := listing{query: q, rows: make(map[lock.Key]lock.State)}
	a := listJSON{Backend: b.ID, Locks: []lockJSON{}}
	for state, err := range b.inspector.Locks(r.Context(), q.idle) {
		var record *lock.RecordError
		switch {
		case errors.As(err, &record):
			a.Unreadable++
		case err != nil:
			return nil, err
		case q.wants(state):
			a.Matching++
			p.add(state)
		}
	}
	rows, more := p.finish()
	for _, row := range rows {
		a.Locks = append(a.Locks, describeState(row))
	}
	if more && q.byName {
		a.Next = a.Locks[len(a.Locks)-1].Lock
	}
	return a, nil
}

// listQuery says which locks to list.
type listQuery struct {
	prefix string // of the id; of the whole name, if it has a slash
	wanted func(lock.State) bool
	idle   bool
	limit  int
	after  string // the name of a lock
	byName bool
	order  func(a, b lock.State) int
}

func parseListQuery(r *http.Request) (q listQuery, err error) {
	q = listQuery{prefix: r.Form.Get("prefix"), after: r.Form.Get("after"), limit: defaultListed}
	switch state := r.Form.Get("state"); state {
	case "":
		q.wanted = func(lock.State) bool { return true }
	case "held":
		q.wanted = func(s lock.State) bool { return s.Held > 0 }
	case "waiting":
		q.wanted = func(s lock.State) bool { return s.Waiting > 0 }
	case "all":
		q.idle = true
		q.wanted = func(lock.State) bool { return true }
	default:
		return q, adminapi.Refuse(http.StatusBadRequest, "state %.40q: there are held, waiting and all; without it, those that are held or waited for are listed", state)
	}
	byName := func(a, b lock.State) int { return cmp.Compare(a.Key.Name(), b.Key.Name()) }
	switch sort := r.Form.Get("sort"); sort {
	case "", "name":
		q.byName, q.order = true, byName
	case "held":
		q.order = func(a, b lock.State) int {
			return cmp.Or(oldestFirst(a.HeldSince, b.HeldSince), byName(a, b))
		}
	case "queue":
		q.order = func(a, b lock.State) int { return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), byName(a, b)) }
	default:
		return q, adminapi.Refuse(http.StatusBadRequest, "sort %.40q: there are name, held (for longest) and queue (the longest)", sort)
	}
	if q.after != "" && !q.byName {
		return q, adminapi.Refuse(http.StatusBadRequest, "after goes with sort name only; for more of the others, raise limit")
	}
	if limit := r.Form.Get("limit"); limit != "" {
		if q.limit, err = strconv.Atoi(limit); err != nil || q.limit < 1 || q.limit > mostListed {
			return q, adminapi.Refuse(http.StatusBadRequest, "limit %.40q is not a number from 1 to %d", limit, mostListed)
		}
	}
	return q, nil
}

// oldestFirst puts zero times, which are none, last.
func oldestFirst(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		return cmp.Compare(b.Unix(), a.Unix()) // that of none is less than any
	}
	return a.Compare(b)
}

func (q *listQuery) wants(s lock.State) bool {
	name := s.Key.Name()
	if !strings.Contains(q.prefix, "/") {
		name = s.Key.ID()
	}
	return strings.HasPrefix(name, q.prefix) && q.wanted(s)
}

// listing gathers the first rows of a list, however long that is. Of a row that comes
// twice the later counts.
type listing struct {
	query   listQuery
	rows    map[lock.Key]lock.State // twice the limit at most
	dropped bool                    // rows beyond the limit, which come after last
	last    lock.State
}

func (p *listing) add(s lock.State) {
	if p.query.byName && s.Key.Name() <= p.query.after {
		return
	}
	if p.dropped && p.query.order(s, p.last) > 0 {
		delete(p.rows, s.Key) // in case it came before
		return
	}
	p.rows[s.Key] = s
	if len(p.rows) >= 2*p.query.limit {
		rows, _ := p.finish()
		clear(p.rows)
		for _, row := range rows {
			p.rows[row.Key] = row
		}
	}
}

// finish returns the rows in their order, and whether there are more.
func (p *listing) finish() (rows []lock.State, more bool) {
	for _, row := range p.rows {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, p.query.order)
	if len(rows) > p.query.limit {
		rows, p.dropped = rows[:p.query.limit], true
		p.last = rows[len(rows)-1]
	}
	return rows, p.dropped
}
