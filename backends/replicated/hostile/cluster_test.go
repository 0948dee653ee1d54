package hostile_test

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
	"github.com/lockgateway/lockgateway/backends/replicated/storetest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // most tests wait most of the time
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func conforms(t *testing.T, config hostile.Config, can ...storetest.Capability) {
	storetest.Run(t, func(t *testing.T) func() replicated.Store {
		c := hostile.New(t, config)
		t.Cleanup(c.Close)
		return c.Open
	}, can...)
}

func TestStrictConforms(t *testing.T) {
	conforms(t, hostile.Config{}, storetest.Fences, storetest.AnnouncesSessions)
}

func TestLooseConforms(t *testing.T) {
	conforms(t, hostile.Config{Kind: hostile.Loose})
}

// late is what any store is in a bad hour, without failing a call. The suite
// must hold for it.
var late = hostile.Faults{
	Delay:       2 * time.Millisecond,
	Stale:       0.3,
	SessionLie:  0.1,
	DoneLate:    time.Second,
	EndLate:     time.Second,
	ExpireLate:  time.Second,
	EventDelay:  20 * time.Millisecond,
	EventLoss:   0.2,
	EventGap:    0.2,
	EventDouble: 0.2,
	Forget:      1,
	ForgetAfter: time.Hour,
}

func TestLateStrictConforms(t *testing.T) {
	conforms(t, hostile.Config{Faults: late}, storetest.Fences, storetest.AnnouncesSessions)
}

func TestLateLooseConforms(t *testing.T) {
	conforms(t, hostile.Config{Kind: hostile.Loose, Faults: late})
}
