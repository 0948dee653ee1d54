//go:build !race

package replicated

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/lockgateway/lockgateway/lock"
)

// What must never be seen. The checks rest on what the clients were told and on
// what the swaps that the store applied were for.

// violation is a set of broken promises.
type violation uint32

const (
	exclusion violation = 1 << iota
	freedEarly
	keptForNobody
	overtaken
	oldGeneration
	holderLost
	tokenNotGreater
	tooManyHeld
	falseForWaiter
	untrueNegative
	untrueValue
	untrueDone
	notCommitted
	twice
	afterAnswer
	endedToken
	keyRanOut
	unreadable
	doesNotAddUp
	stuck
)

var violationNames = []string{
	"more clients hold than there are slots", "a slot was freed under its holder", "a slot is kept for nobody",
	"a waiter was overtaken", "a waiter from before a reset, or a release of its holder, was granted", "a holder lost its slot",
	"a token is not greater than those before", "the record holds more than the maximum",
	"a waiter was turned away for no reason", "a negative answer was not true", "a value was not true",
	"an answer was not true", "an answer without a commit", "carried out twice", "carried out after the answer",
	"the token of a slot that had ended was told", "a grant was told whose key had run out", "a record cannot be read",
	"the record does not add up", "stuck",
}

func (v violation) String() string {
	var list []string
	for i, name := range violationNames {
		if v>>i&1 == 1 {
			list = append(list, name)
		}
	}
	return strings.Join(list, "; ")
}

func (e effects) String() string {
	names := []string{"queued", "leaves", "granted", "denied", "refused", "released", "reset", "gives back", "value"}
	return names[bits.TrailingZeros16(uint16(e))]
}

func (s *situation) violate(v violation, detail string) {
	if v&s.sc.ignore == 0 && s.violated == 0 {
		s.violated, s.detail = v, detail
	}
}

// checkFlight looks at a swap that is about to be sent.
func (g *gatewaySim) checkFlight(f *flight) {
	for _, o := range f.outcomes {
		i := g.clientOf(o.request)
		c := &g.world.clients[i]
		if o.request.kind == giveBackRequest || c.status == waitsForAnswer || c.status == isGranted {
			continue
		}
		if o.what != hasLeft && o.what != isValue {
			g.world.violate(afterAnswer, fmt.Sprintf("client %d is in a swap that was made after its answer", i))
		}
	}
}

func (s *situation) checkGrant(i int, key uint64) {
	c := &s.clients[i]
	switch {
	case c.commits&grants == 0:
		s.violate(notCommitted, fmt.Sprintf("client %d is granted", i))
	case c.value < 1 || c.value > s.sc.max:
		s.violate(untrueValue, fmt.Sprintf("client %d is granted with value %d", i, c.value))
	case c.token != 0 && c.token <= c.dead:
		s.violate(endedToken, fmt.Sprintf("client %d: %d", i, c.token))
	case key != 0 && s.keys[key] == runOut:
		s.violate(keyRanOut, fmt.Sprintf("client %d", i))
	}
}

func (s *situation) checkNegative(i int) {
	c, q := &s.clients[i], &s.sc.clients[i]
	switch {
	case q.kind == releaseRequest || q.try:
		if !c.possible {
			s.violate(untrueNegative, fmt.Sprintf("client %d", i))
		}
	case c.timedOut || c.excused:
	default:
		s.violate(falseForWaiter, fmt.Sprintf("client %d was told false", i))
	}
}

func (s *situation) checkRefused(i int, err error) {
	if errors.Is(err, errPlaceLost) && s.over == 0 && s.doubted == 0 {
		s.violate(falseForWaiter, fmt.Sprintf("client %d was told 503", i))
	}
}

func (s *situation) checkValue(i int, v lock.Value) {
	c := &s.clients[i]
	bit := uint32(2) << v.Held
	if v.Fresh {
		bit = 1
	}
	if c.values&bit == 0 && (!v.Fresh || !s.sc.loose) {
		s.violate(untrueValue, fmt.Sprintf("client %d was told %+v, and possible is %b", i, v, c.values))
	}
}

func (s *situation) checkDone(i int) {
	c := &s.clients[i]
	switch s.sc.clients[i].kind {
	case releaseRequest:
		if c.commits&frees == 0 {
			s.violate(notCommitted, fmt.Sprintf("client %d released", i))
		}
	case resetRequest:
		if c.commits&resets == 0 && !c.possible {
			s.violate(untrueDone, fmt.Sprintf("client %d was told that the lock was reset", i))
		}
	default:
	}
}

// mayHold reports whether a slot may be held for a client, now or soon.
func (s *situation) mayHold(i int) bool {
	c, q := &s.clients[i], &s.sc.clients[i]
	if q.kind != acquireRequest {
		return false
	}
	g := s.gateways[q.gateway]
	return c.status == toldTrue || c.status == isGranted || c.orphan && !c.byOther ||
		g.up && (g.requests[i] != nil || g.giveBacks[i] != nil)
}

// compact takes out of slots the grants that nobody holds, and each told grant
// with the first release after it: such a pair is decided for good.
func (s *situation) compact() {
	for again := true; again; {
		again = false
		for k, e := range s.slots {
			if e != released {
				if !s.mayHold(int(e)) {
					s.slots, again = slices.Delete(s.slots, k, k+1), true
					break
				}
				continue
			}
			told := slices.IndexFunc(s.slots[:k], func(e int8) bool { return e != released && s.clients[e].status == toldTrue })
			if told < 0 && k > 0 {
				continue
			}
			s.slots = slices.Delete(s.slots, k, k+1)
			if told >= 0 {
				s.slots = slices.Delete(s.slots, told, told+1)
			}
			again = true
			break
		}
	}
}

// check looks at a situation.
func (s *situation) check() {
	s.compact()
	s.tidyGhosts()
	r := s.store.rec
	if r == nil {
		r = &record{}
	}
	told, claims := int64(0), int64(0)
	for _, e := range s.slots {
		if e == released {
			claims = max(claims-1, 0)
			continue
		}
		claims++
		if s.clients[e].status == toldTrue {
			told++
		}
	}
	names := map[string]bool{}
	for i := range s.clients {
		c, name := &s.clients[i], s.sc.clients[i].holder
		if name == "" || c.status != toldTrue && c.status != isGranted || c.token <= s.released[i] || s.sc.clients[i].kind != acquireRequest {
			continue
		}
		h := r.holder(name)
		if h == nil || h.token != c.token {
			s.violate(holderLost, fmt.Sprintf("client %d has token %d", i, c.token))
		}
		if h != nil && s.lives(h) && c.status == toldTrue && !names[name] {
			names[name] = true
			told++
		}
	}
	if told > s.sc.max {
		s.violate(exclusion, fmt.Sprintf("%d clients", told))
	}
	if r.anonymous < claims {
		s.violate(freedEarly, fmt.Sprintf("%d held, and %d hold", r.anonymous, claims))
	}
	if r.anonymous > claims {
		s.violate(keptForNobody, fmt.Sprintf("%d held, and %d hold", r.anonymous, claims))
	}
	for k := range r.holders {
		mayHold := false
		for i := range s.clients {
			mayHold = mayHold || s.sc.clients[i].holder == r.holders[k].name && s.mayHold(i)
		}
		if !mayHold {
			s.violate(keptForNobody, "holder "+r.holders[k].name)
		}
	}
}

// tidyGhosts forgets what does not count any more, so that equal situations are
// seen to be equal.
func (s *situation) tidyGhosts() {
	for i := range s.clients {
		c, g := &s.clients[i], s.gateways[s.sc.clients[i].gateway]
		if c.status == idleClient || c.status == waitsForAnswer || g.up && g.requests[i] != nil {
			continue
		}
		c.order, c.session, c.run, c.excused, c.possible, c.values, c.dead, c.ranOut = 0, 0, 0, false, false, 0, 0, 0
		c.hit, c.value, c.timedOut, c.gone, c.tardy = false, 0, false, false, false
		if c.status != isGranted {
			c.mark = 0
		}
	}
}
