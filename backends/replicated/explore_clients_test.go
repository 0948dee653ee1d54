//go:build !race

package replicated

import (
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// The clients of the explored world, each with one request.

// client is one request, from before it is sent until it is answered, and what
// an observer of all commits knows of it.
type client struct {
	status   status
	token    uint64
	mark     uint64
	value    int64
	gone     bool // it went before it was answered
	timedOut bool
	orphan   bool // its gateway crashed while something was under way for it
	byOther  bool // granted by the swap of another gateway
	tardy    bool // answered without knowing the outcome, or as not carried out

	order   uint8 // of the recorded place; 0: there is none
	session SessionID
	run     uint64
	hit     bool // a reset, or a release of its holder, took the place

	commits  effects // what was carried out
	excused  bool    // a reset, or a release of the holder, came since it was sent
	possible bool    // the negative answer was true at some moment since
	values   uint32  // values that were true at some moment since; bit 0: {}
	dead     uint64  // tokens of its holder up to this had ended when it was sent
	ranOut   uint8   // keys that had run out when it was sent
}

type status uint8

const (
	idleClient status = iota
	waitsForAnswer
	isGranted // the gateway has the answer, and has not written it
	toldTrue
	toldFalse
	told503
	told504
	wentAway
	gotNothing // its gateway crashed
)

// spec says what a client asks for.
type spec struct {
	kind    kind
	gateway int
	holder  string
	ttl     bool
	try     bool
	after   []int // sent only after these were answered true
}

// newRequest returns a client's request as backend.go makes it.
func (s *situation) newRequest(i int, g *gatewaySim) *request {
	q := &s.sc.clients[i]
	r := &request{kind: q.kind, holder: q.holder, id: uint64(i + 1), try: q.try, done: g.doneOf(i)}
	if q.holder != "" {
		r.hash = hashName(q.holder)
	}
	if q.ttl {
		r.ttl = time.Second
	}
	if q.kind == acquireRequest {
		r.hurry = func() {}
	}
	return r
}

// newGiveBack returns the request by which the caller undoes an answer.
func (s *situation) newGiveBack(i int, g *gatewaySim) *request {
	c := &s.clients[i]
	r := giveBackOf(&request{holder: s.sc.clients[i].holder, hash: hashName(s.sc.clients[i].holder)},
		lock.AcquireResult{Acquired: true, Mark: c.mark, Token: c.token})
	if r.holder == "" {
		r.hash = nameHash{}
	}
	r.done = g.doneOf(i)
	return r
}
