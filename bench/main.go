// Command bench measures what serving locks costs, always against something
// that does the same without locks, in the same run: a machine's speed and its
// noise then matter little. It measures and does not judge: the exit code is 0
// also if a goal is missed.
//
//	go run . http      memory backend through Caddy, against Caddy's respond
//	go run . waiters   memory per queued request, against a handler that blocks
//	go run . etcd      the engine on etcd, against plain writes and etcd's own locks
//	go run . nats      the engine on NATS JetStream, against plain writes
//	go run . backends  all backends through Caddy, side by side
//
// It needs Linux, for the CPU time of the servers' processes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var measurements = map[string]func(context.Context, []string) error{
	"http":     measureHTTP,
	"waiters":  measureWaiters,
	"etcd":     measureEtcd,
	"nats":     measureNATS,
	"backends": measureBackends,
}

func main() {
	if len(os.Args) < 2 || measurements[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go run . http|waiters|etcd|nats|backends [flags]; -h after the name lists the flags")
		os.Exit(2)
	}
	// Interrupted, the measurement ends itself, and its servers with it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measurements[os.Args[1]](ctx, os.Args[2:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
