package integration_test

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// step is an operation of the model of an anonymous semaphore without waiting.
type step string

const (
	doAcquire step = "acquire"
	doRelease step = "release"
	doValue   step = "value"
	doReset   step = "reset"

	// What requests without an outcome are: they may have an effect at any time
	// from when they were sent, and an acquire may be given back after it.
	mayAcquire  step = "may acquire"
	mayGiveBack step = "may give back"
	mayRelease  step = "may release"
	mayReset    step = "may reset"
)

// semaphore is the model's state.
type semaphore struct {
	used   bool // acquired since the beginning or the last reset
	held   int64
	untold int64 // slots of those held whose clients were not told
}

// semaphoreModel is the contract for slots that nobody waits for.
func semaphoreModel(slots int64) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{semaphore{}} },
		Step: func(from, in, out any) (next []any) {
			for _, s := range from.(semaphore).after(in.(step), out.(gatewaytest.Answer), slots) {
				next = append(next, s)
			}
			return next
		},
	}
	return m.ToModel()
}

// after returns the states that a step may lead to; none if its answer cannot
// have been.
func (s semaphore) after(do step, a gatewaytest.Answer, slots int64) []semaphore {
	taken := semaphore{used: true, held: s.held + 1, untold: s.untold}
	freed := semaphore{used: s.used, held: s.held - 1, untold: s.untold}
	if freed.held <= 0 {
		freed.untold = 0 // the era ends in which they could be given back
	}
	switch do {
	case doAcquire:
		switch {
		case a.Acquired && taken.held <= slots && a.Held() == taken.held:
			return []semaphore{taken}
		case !a.Acquired && s.held == slots:
			return []semaphore{s}
		}
	case doRelease:
		switch {
		case a.Released && s.held > 0:
			return []semaphore{freed}
		case !a.Released && s.held == 0:
			return []semaphore{s}
		}
	case doValue:
		if (a.Value != nil) == s.used && a.Held() == s.held && a.Waiting == 0 {
			return []semaphore{s}
		}
	case doReset:
		return []semaphore{{}}
	case mayAcquire:
		if taken.held <= slots {
			taken.untold++
			return []semaphore{s, taken}
		}
		return []semaphore{s}
	case mayGiveBack:
		if s.untold > 0 {
			freed.untold = max(0, freed.untold-1)
			return []semaphore{s, freed}
		}
		return []semaphore{s}
	case mayRelease:
		if s.held > 0 {
			return []semaphore{s, freed}
		}
		return []semaphore{s}
	case mayReset:
		return []semaphore{s, {}}
	}
	return nil
}

// The model accepts what the contract allows, and nothing else.
func TestSemaphoreModel(t *testing.T) {
	t.Parallel()
	value := func(n int64) gatewaytest.Answer { return gatewaytest.Answer{Value: &n} }
	granted := func(n int64) gatewaytest.Answer { return gatewaytest.Answer{Acquired: true, Value: &n} }
	var (
		none     gatewaytest.Answer // false, or {}
		released = gatewaytest.Answer{Released: true}
	)
	type op struct {
		do     step
		answer gatewaytest.Answer
	}
	for _, test := range []struct {
		name    string
		history []op
		want    bool
	}{
		{"all slots", []op{{doAcquire, granted(1)}, {doAcquire, granted(2)}, {doAcquire, none}, {doValue, value(2)}}, true},
		{"one too many", []op{{doAcquire, granted(1)}, {doAcquire, granted(2)}, {doAcquire, granted(3)}}, false},
		{"refused beside a free slot", []op{{doAcquire, granted(1)}, {doAcquire, none}}, false},
		{"wrong count", []op{{doAcquire, granted(2)}}, false},
		{"release of nothing", []op{{doRelease, released}}, false},
		{"release that says no", []op{{doAcquire, granted(1)}, {doRelease, none}}, false},
		{"used and free", []op{{doAcquire, granted(1)}, {doRelease, released}, {doValue, value(0)}}, true},
		{"reset forgets", []op{{doAcquire, granted(1)}, {doReset, none}, {doValue, none}}, true},
		{"reset leaves something", []op{{doAcquire, granted(1)}, {doReset, none}, {doValue, value(1)}}, false},
		{"unknown acquire had no effect", []op{{mayAcquire, none}, {doValue, none}}, true},
		{"unknown acquire had one", []op{{mayAcquire, none}, {doAcquire, granted(2)}}, true},
		{"unknown acquire had two", []op{{mayAcquire, none}, {doValue, value(2)}}, false},
		{"unknown acquire went back", []op{{mayAcquire, none}, {mayGiveBack, none}, {doValue, value(1)}, {doValue, value(0)}}, true},
		{"known acquire went back", []op{{doAcquire, granted(1)}, {mayGiveBack, none}, {doValue, value(0)}}, false},
		{"unknown release", []op{{doAcquire, granted(1)}, {mayRelease, none}, {doValue, value(1)}, {doValue, value(0)}}, true},
		{"unknown reset", []op{{doAcquire, granted(1)}, {mayReset, none}, {doValue, none}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var operations []porcupine.Operation
			for i, o := range test.history {
				end := int64(2*i + 1)
				if o.do == mayAcquire || o.do == mayGiveBack || o.do == mayRelease || o.do == mayReset {
					end = math.MaxInt64
				}
				operations = append(operations, porcupine.Operation{Input: o.do, Output: o.answer, Call: int64(2 * i), Return: end})
			}
			if got := porcupine.CheckOperations(semaphoreModel(2), operations); got != test.want {
				t.Errorf("accepted: %t", got)
			}
		})
	}
}
