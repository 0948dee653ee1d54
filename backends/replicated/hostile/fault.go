package hostile

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Faults are what goes wrong. Chances are probabilities from 0 to 1, durations
// are upper bounds of a random one; the zero value is a cluster that works.
type Faults struct {
	// Budget is how many faults strike in all, delays not counted; 0: no limit.
	Budget int

	// Delay is how long each call may take on its way to the cluster, and
	// again on its way back. A swap whose caller leaves while it is on its way
	// may be carried out all the same, up to LateBy later.
	Delay time.Duration

	// Refuse, Lose, Late and DropReply are the chances that one of these
	// happens to a call; together they are at most 1.
	Refuse    float64 // nothing happens, and the caller is told so: a swap fails as replicated.ErrNotApplied
	Lose      float64 // nothing happens, and the caller cannot know
	Late      float64 // the caller gets an error, and a swap is applied up to LateBy later, if it still can be
	DropReply float64 // it happens, and the caller gets an error
	LateBy    time.Duration

	// Stale is the chance that a read, or the record that a refused swap gives,
	// is an old one, and that Remaining gives less than there is. It strikes
	// loose clusters only.
	Stale float64

	// FalseRefusal is the chance that a swap which is applied is answered as refused,
	// by a server that does not decide any more. It strikes loose clusters only.
	FalseRefusal float64

	SessionLoss float64       // the chance of each swap that its session ends as it arrives
	SessionLie  float64       // the chance that SessionEnded says the opposite
	DoneLate    time.Duration // from the end of a session until Session.Done says so
	EndLate     time.Duration // by how much a session outlives the time it runs out
	ExpireLate  time.Duration // by how much an expiring key outlives its TTL

	EventDelay  time.Duration // each event on its own, so that they overtake one another
	EventLoss   float64       // the chance that an event is lost, and nothing says so
	EventGap    float64       // the chance that an event is lost, and Event.Missed is reported
	EventDouble float64       // the chance that an event comes twice

	// Forget is the chance that the record of an idle swap is deleted, once it
	// has been left alone for ForgetAfter or up to twice as long.
	Forget      float64
	ForgetAfter time.Duration
}

// Storm is some of every fault, for tests of everything at once.
func Storm() Faults {
	return Faults{
		Delay:        5 * time.Millisecond,
		Refuse:       0.03,
		Lose:         0.03,
		Late:         0.03,
		DropReply:    0.05,
		LateBy:       2 * time.Second,
		Stale:        0.2,
		FalseRefusal: 0.05,
		SessionLoss:  0.002,
		SessionLie:   0.02,
		DoneLate:     time.Second,
		EndLate:      5 * time.Second,
		ExpireLate:   2 * time.Second,
		EventDelay:   20 * time.Millisecond,
		EventLoss:    0.05,
		EventGap:     0.05,
		EventDouble:  0.1,
		Forget:       0.5,
		ForgetAfter:  10 * time.Minute,
	}
}

// SetFaults replaces the faults, for calls and news that begin from now on,
// and begins a new budget.
func (c *Cluster) SetFaults(f Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults, c.strikes = f, 0
}

// The errors of calls that fail. Those that leave a swap in doubt must not wrap
// replicated.ErrNotApplied.
var (
	errUnavailable = errors.New("the cluster has no leader")
	errReset       = errors.New("the connection was reset")
	errClosed      = errors.New("the store is closed")
)

// strike is what goes wrong with a call.
type strike int

const (
	none strike = iota
	refuse
	lose
	late
	dropReply
)

// fate is what befalls one call. It is drawn whole as the call begins, from the
// dice of its gateway: what happens to other gateways does not change it.
type fate struct {
	there, back time.Duration
	strike      strike
	doubt       error         // what a caller is told that cannot know
	arrives     bool          // whether a call is carried out whose caller has left
	lateBy      time.Duration // when a late swap is applied
	age         float64       // which of the old records, or how much less of what remains

	// What the dice show for faults of some calls only; see befalls.
	stale, lie, sessionLoss, falseRefusal float64
}

// spared is the fate of a call that no fault befalls.
var spared = fate{stale: 1, lie: 1, sessionLoss: 1, falseRefusal: 1}

// draw draws the fate of a call. The caller holds c.mu.
func (c *Cluster) draw(dice *rand.Rand) fate {
	f := fate{
		there:        upTo(dice, c.faults.Delay),
		back:         upTo(dice, c.faults.Delay),
		doubt:        errReset,
		arrives:      dice.Float64() < 0.5,
		lateBy:       upTo(dice, c.faults.LateBy),
		age:          dice.Float64(),
		stale:        dice.Float64(),
		lie:          dice.Float64(),
		sessionLoss:  dice.Float64(),
		falseRefusal: dice.Float64(),
	}
	if dice.Float64() < 0.5 {
		f.doubt = context.DeadlineExceeded
	}
	at := dice.Float64()
	for _, s := range []struct {
		strike strike
		chance float64
	}{
		{refuse, c.faults.Refuse}, {lose, c.faults.Lose}, {late, c.faults.Late}, {dropReply, c.faults.DropReply},
	} {
		if at -= s.chance; at < 0 {
			if c.afford() {
				f.strike = s.strike
			}
			break
		}
	}
	return f
}

// befalls decides whether a fault strikes, given what the dice show. The caller
// holds c.mu.
func (c *Cluster) befalls(die, chance float64) bool { return die < chance && c.afford() }

// afford takes one fault from the budget, if it has any. The caller holds c.mu.
func (c *Cluster) afford() bool {
	if c.faults.Budget > 0 && c.strikes >= c.faults.Budget {
		return false
	}
	c.strikes++
	c.counts.Strikes++
	return true
}

// upTo draws a duration from 0 to d.
func upTo(dice *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(dice.Float64() * float64(d))
}
