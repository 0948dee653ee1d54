package main_test

import (
	"syscall"
	"testing"
)

// Without a grace_period Caddy waits for requests without end when it exits. It
// must not wait for those that wait.
func TestB33StopEndsAThousandWaiters(t *testing.T) {
	for _, test := range []struct {
		name string
		stop func(*server)
	}{
		{"SIGTERM", func(s *server) { s.signal(syscall.SIGTERM) }},
		{"caddy stop", func(s *server) { s.stop() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			const count = 1000
			needFiles(t, 2*count)
			s := startServer(t, onlySite, nil)
			s.take("1/a", "")
			waiters := make([]*waiter, count)
			for i := range waiters {
				waiters[i] = s.queue("1/a", "")
			}
			s.awaitWaiting("1/a", count)
			for _, w := range waiters {
				w.expectWaiting(t)
			}

			test.stop(s)
			delays := make(map[int]bool)
			for _, w := range waiters {
				delays[w.expectClosing(t)] = true
			}
			if len(delays) < 2 {
				t.Errorf("all are told to come back at once, after %v seconds", delays)
			}
			s.expectExit()
		})
	}
}
