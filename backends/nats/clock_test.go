package nats

import (
	"testing"
	"time"
)

func TestSecondsAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 1, time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 90 * time.Second: 90, maxExpiry: 200 * 365 * 24 * 3600,
	} {
		if got := seconds(d); got != want {
			t.Errorf("%v is %d seconds; want %d", d, got, want)
		}
	}
}

func TestClockIsThatOfTheServers(t *testing.T) {
	var c clock
	if d := time.Since(c.now()); d < 0 || d > time.Minute {
		t.Errorf("without servers the clock is %v late", d)
	}
	c.set(made, time.Now().Add(-time.Hour))
	if d := c.now().Sub(made.Add(time.Hour)); d < 0 || d > time.Minute {
		t.Errorf("the clock is %v ahead", d)
	}
}
