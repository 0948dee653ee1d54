package main

import (
	"context"
	"errors"
	"flag"
	"os"
)

const followersOnly = "followers"

// measureNATS measures gateways on NATS JetStream.
func measureNATS(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("nats", flag.ExitOnError)
	syncAlways := flags.Bool("sync-always", false, "the servers sync every write to disk before they acknowledge it, which is not their default")
	locks := flags.Int("locks", 10_000, "for -only "+followersOnly+": how many locks somebody waits for; for -only "+memoryOnly+", which takes minutes: how many are used once")
	o, err := storeFlags(flags, args, followersOnly, memoryOnly)
	if err == nil && *locks < 1 {
		err = errors.New("-locks must be positive")
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	servers, err := startNATS(ctx, dir, o.nodes, *syncAlways)
	if err != nil {
		return err
	}
	defer func() { _ = servers.stop() }()
	switch o.only {
	case followersOnly:
		return measureFollowers(ctx, servers, *locks)
	case memoryOnly:
		return measureOnce(ctx, servers, int64(*locks))
	}
	name := count(o.nodes, "NATS server")
	if *syncAlways {
		name += " with sync_interval: always"
	}
	return measureStore(ctx, servers, name, o)
}
