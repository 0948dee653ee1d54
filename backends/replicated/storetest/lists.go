package storetest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// listed is more records than any store should read at a time.
const listed = 1100

var listPromises = []promise{
	{"RecordsListsAll", "Records yields all records there are, whatever their number and their keys, as they are", func(s *subject) {
		tag := key()
		keys := []string{pad(tag, "x"), pad(tag, "y")}
		for _, odd := range oddities {
			keys = append(keys, tag+odd)
		}
		for n := len(keys); n < listed; n++ {
			keys = append(keys, fmt.Sprint(tag, " ", n))
		}
		want := s.createAll(keys)
		for _, k := range keys[:20] { // what is listed is what is there now
			want[k] = s.apply(s.gateway, replicated.Swap{Key: k, Expect: want[k].Revision, Value: []byte("changed")})
		}
		for _, g := range []*gateway{s.gateway, s.another()} {
			s.lists(g, tag, want)
		}
	}},
	{"RecordsStops", "Records yields until yield returns false, and fails for no such reason", func(s *subject) {
		s.createAll([]string{key(), key(), key()})
		for _, most := range []int{1, 2} {
			s.eventually("Records shows some", func() bool {
				n := 0
				s.must("Records", s.Records(s.ctx, func(string, replicated.Entry) bool {
					n++
					return n < most
				}))
				if n > most {
					s.broken("Records called yield %d times, which returned false at the call %d", n, most)
				}
				return n == most
			})
		}
	}},
	{"RecordsListsWhatChanges", "Records leaves no record out because it changes meanwhile", func(s *subject) {
		tag := key()
		var keys []string
		for n := range listed / 2 { // more than one page
			keys = append(keys, fmt.Sprintf("%s %04d", tag, n))
		}
		entries := s.createAll(keys)
		shown := make(map[string]bool)
		complete := func() bool {
			changed := false
			s.must("Records", s.Records(s.ctx, func(k string, _ replicated.Entry) bool {
				if strings.HasPrefix(k, tag) {
					shown[k] = true
				}
				if !changed {
					changed = true
					for _, k := range keys[len(keys)-10:] {
						entries[k] = s.apply(s.gateway, replicated.Swap{Key: k, Expect: entries[k].Revision, Value: []byte("changed")})
					}
				}
				return true
			}))
			if len(shown) < len(keys) && s.Linearizable() {
				s.broken("Records showed %d of %d records that were there all the time", len(shown), len(keys))
			}
			return len(shown) == len(keys)
		}
		s.eventually("all are shown", complete)
	}},
	{"SessionsListsTheLiving", "Sessions lists the sessions of all gateways that have not ended, each with its description", func(s *subject) {
		a, b := s.gateway, s.another()
		longest := strings.Repeat("\x00é", replicated.MaxDescriptionLength/3)
		var sessions []replicated.Session
		for _, description := range []string{"", "{}", longest} {
			session, err := a.OpenSession(s.ctx, description)
			s.must("opening a session", err)
			sessions = append(sessions, session)
			for _, g := range []*gateway{a, b} {
				s.eventually("a session is listed", func() bool { return s.describes(g, session, description) })
			}
		}
		s.must("fence", sessions[2].Fence(s.ctx))
		s.pass(a.SessionTTL()/2, func() {})
		s.eventually("the description stays", func() bool { return s.describes(b, sessions[2], longest) })
		s.must("end", sessions[1].End(s.ctx))
		s.eventually("an ended session is not listed", func() bool { return !s.describes(b, sessions[1], "{}") })
		s.eventually("the others are", func() bool { return s.describes(b, sessions[2], longest) && s.describes(b, a.session, "") })
	}},
}

// createAll makes records, several at a time.
func (s *subject) createAll(keys []string) map[string]replicated.Entry {
	s.Helper()
	var (
		all     sync.WaitGroup
		mu      sync.Mutex // guards what follows
		failure error
		made    = make(map[string]replicated.Entry)
		turn    = make(chan struct{}, 32)
	)
	for n, k := range keys {
		all.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			value := fmt.Append(nil, "record ", n)
			res, err := s.Swap(s.ctx, replicated.Swap{Key: k, Value: value, Session: s.session})
			mu.Lock()
			defer mu.Unlock()
			if err != nil || !res.Applied {
				failure = fmt.Errorf("the create of %.50q gave %+v, error %w", k, res, err)
			}
			made[k] = replicated.Entry{Value: value, Revision: res.Entry.Revision}
		})
	}
	all.Wait()
	s.must("creating records", failure)
	return made
}

// list returns the records whose keys begin so, the latest of each key.
func (s *subject) list(g *gateway, tag string) map[string]replicated.Entry {
	s.Helper()
	found := make(map[string]replicated.Entry)
	s.must("Records", g.Records(s.ctx, func(k string, e replicated.Entry) bool {
		if strings.HasPrefix(k, tag) {
			found[k] = e
		}
		return true
	}))
	return found
}

// lists checks which records there are whose keys begin so. A store that is not
// linearizable may show any of them as it was, but not always.
func (s *subject) lists(g *gateway, tag string, want map[string]replicated.Entry) {
	s.Helper()
	shown := make(map[string]bool)
	complete := func() bool {
		for k, e := range s.list(g, tag) {
			if _, ok := want[k]; !ok {
				s.broken("Records shows the key %.50q, which nobody made", k)
			}
			if same(e, want[k]) {
				shown[k] = true
			} else if g.Linearizable() {
				s.broken("Records shows %.50q as %s; want %s", k, show(e), show(want[k]))
			}
		}
		return len(shown) == len(want)
	}
	if !complete() {
		if g.Linearizable() {
			s.broken("Records shows %d of %d records", len(shown), len(want))
		}
		s.eventually("Records shows all that there is", complete)
	}
}

// describes reports whether a session is listed, and described so.
func (s *subject) describes(g *gateway, session replicated.Session, description string) bool {
	s.Helper()
	list, err := g.Sessions(s.ctx)
	s.must("Sessions", err)
	for _, i := range list {
		if i.ID == session.ID() {
			return i.Description == description
		}
	}
	return false
}
