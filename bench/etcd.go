package main

import (
	"context"
	"errors"
	"flag"
	"os"
)

// measureEtcd measures gateways on etcd.
func measureEtcd(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	locks := flags.Int64("locks", 100_000, "for -only "+memoryOnly+", which takes minutes: how many locks are used once")
	o, err := storeFlags(flags, args, memoryOnly)
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
	servers, err := startEtcd(ctx, dir, o.nodes)
	if err != nil {
		return err
	}
	defer func() { _ = servers.stop() }()
	if o.only == memoryOnly {
		return measureOnce(ctx, servers, *locks)
	}
	return measureStore(ctx, servers, count(o.nodes, "etcd server"), o)
}
