//go:build !race

package replicated

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// findings are what a search has found.
type findings struct {
	situations, moves, depth int
	complete                 bool
	served                   int // protocol moves, at most, until nobody waits for what he could have
	traces                   map[violation][]string
	took                     time.Duration
}

func (f *findings) String() string {
	t := fmt.Sprintf("%8d situations %9d moves depth %3d %6.1fs", f.situations, f.moves, f.depth, f.took.Seconds())
	if !f.complete {
		t += " (cut)"
	}
	return t
}

// search is breadth first, so the trace that it finds is the shortest.
type search struct {
	sc     *scenario
	ids    map[identity]int32
	parent []int32
	via    []uint16
	owed   []bool // something is to come by protocol moves alone

	from, to []int32 // protocol moves from situations in which something is owed
	found    findings
}

// explore searches all situations of a scenario, up to a limit. It stops at the
// first violation of enough.
func explore(sc *scenario, limit int, enough violation) findings {
	start := time.Now()
	first := sc.begin()
	x := &search{sc: sc, ids: map[identity]int32{}, found: findings{complete: true, traces: map[violation][]string{}}}
	x.add(first, first.identity(), 0, 0)
	type item struct {
		s  *situation
		id int32
	}
	frontier := []item{{first, 0}}
	for len(frontier) > 0 {
		var next []item
		for n := range frontier {
			it := frontier[n]
			frontier[n].s = nil
			for k, m := range it.s.moves(false) {
				x.found.moves++
				same := m.next.identity()
				id, seen := x.ids[same]
				if !seen {
					id = x.add(m.next, same, it.id, uint16(k))
					switch v := m.next.violated; {
					case v != 0:
						if x.found.traces[v] == nil {
							x.found.traces[v] = x.trace(id)
						}
						if v&enough != 0 {
							x.found.complete = false
							next, frontier = nil, nil
						}
					case len(x.parent) < limit:
						next = append(next, item{m.next, id})
					default:
						x.found.complete = false
					}
				}
				if frontier == nil {
					break
				}
				if m.protocol && x.owed[it.id] {
					x.from, x.to = append(x.from, it.id), append(x.to, id)
				}
			}
			if frontier == nil {
				break
			}
		}
		frontier = next
		x.found.depth++
	}
	x.found.situations = len(x.parent)
	if x.found.complete && len(x.found.traces) == 0 {
		x.progress()
	}
	x.found.took = time.Since(start)
	return x.found
}

func (x *search) add(s *situation, same identity, parent int32, via uint16) int32 {
	id := int32(len(x.parent))
	x.ids[same] = id
	x.parent, x.via, x.owed = append(x.parent, parent), append(x.via, via), append(x.owed, s.owes())
	return id
}

// progress: from every situation in which something is owed, protocol moves
// alone lead to one in which nothing is.
func (x *search) progress() {
	good := make([]bool, len(x.owed))
	for i, owed := range x.owed {
		good[i] = !owed
	}
	for again := true; again; {
		again = false
		var fresh []int32
		for e := range x.from {
			if !good[x.from[e]] && good[x.to[e]] {
				fresh = append(fresh, x.from[e])
			}
		}
		for _, i := range fresh {
			good[i], again = true, true
		}
		if again {
			x.found.served++
		}
	}
	if i := slices.Index(good, false); i >= 0 && x.sc.ignore&stuck == 0 {
		x.found.traces[stuck] = x.trace(int32(i))
	}
}

// trace goes the way to a situation again, to describe it.
func (x *search) trace(id int32) []string {
	var way []int32
	for i := id; i > 0; i = x.parent[i] {
		way = append(way, i)
	}
	slices.Reverse(way)
	s := x.sc.begin()
	var lines []string
	for _, i := range way {
		m := s.moves(true)[x.via[i]]
		lines = append(lines, m.label)
		s = m.next
	}
	if s.violated != 0 {
		lines = append(lines, "=> "+s.violated.String()+": "+s.detail)
	} else {
		lines = append(lines, "=> what is owed now is never done: "+s.store.rec.String())
	}
	return lines
}

// owes reports whether somebody is to get something without anybody's doing: a
// waiter a free slot, a request its answer, the record the end of a place or of
// a slot that nobody wants.
func (s *situation) owes() bool {
	r := s.store.rec
	for i := range s.clients {
		c, q := &s.clients[i], &s.sc.clients[i]
		g := s.gateways[q.gateway]
		if !g.up || g.session == 0 && s.opened >= s.sc.maxSessions() {
			continue
		}
		if g.giveBacks[i] != nil {
			return true
		}
		if g.requests[i] == nil {
			continue
		}
		if c.status != waitsForAnswer || c.timedOut || c.hit || q.try || q.kind != acquireRequest || c.order == 0 {
			return true
		}
		if at, ok := s.position(i); ok && at < s.sc.max-r.held() {
			return true
		}
		if r != nil && r.held() < s.sc.max {
			return true
		}
	}
	return false
}

// roomy lets garbage lie for longer while a test explores, which is mostly
// copying.
func roomy(t *testing.T) {
	t.Helper()
	last := debug.SetGCPercent(300)
	t.Cleanup(func() { debug.SetGCPercent(last) })
}

// testScenario explores a scenario and compares with what it is to show.
func testScenario(t *testing.T, sc *scenario, limit int) {
	t.Helper()
	f := explore(sc, limit, sc.expect)
	for v := range f.traces {
		t.Logf("%v, after %d moves", v, len(f.traces[v])-1)
	}
	t.Logf("%-32s %v, served within %d moves", sc.name, &f, f.served)
	if sc.expect != 0 {
		for v := range f.traces {
			if v&sc.expect != 0 {
				if testing.Verbose() && *exploreTraces {
					t.Logf("%v:\n%s", v, numbered(f.traces[v]))
				}
				return
			}
		}
		t.Errorf("not seen: %v", sc.expect)
	}
	for v, trace := range f.traces {
		t.Errorf("%v:\n%s", v, numbered(trace))
	}
	if !f.complete && sc.expect == 0 {
		t.Errorf("there are more than %d situations", limit)
	}
}

func numbered(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&b, "%4d %s\n", i+1, l)
	}
	return b.String()
}
