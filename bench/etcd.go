package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/lockgateway/lockgateway/backends/etcd"
)

// gatewayCount is how many gateways share a lock, where several do.
const gatewayCount = 3

type etcdOptions struct {
	nodes   int
	rounds  int
	round   time.Duration
	only    string
	locks   int64
	profile string
}

const memoryOnly = "memory"

func etcdFlags(args []string) (etcdOptions, error) {
	names := ""
	for _, x := range experiments {
		names += x.name + ", "
	}
	var o etcdOptions
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	flags.IntVar(&o.nodes, "nodes", 1, "how many etcd servers keep the data: 1 or 3")
	flags.IntVar(&o.rounds, "rounds", 15, "how often each cell is measured, interleaved with the others")
	flags.DurationVar(&o.round, "round", 400*time.Millisecond, "how long each time")
	flags.StringVar(&o.only, "only", "", "just one of "+names+"or "+memoryOnly+", which is left out otherwise since it takes minutes")
	flags.Int64Var(&o.locks, "locks", 100_000, "for -only "+memoryOnly+": how many locks are used once")
	flags.StringVar(&o.profile, "profile", "", "afterwards write CPU profiles of this process, into files that start like this")
	_ = flags.Parse(args) // exits
	if o.nodes != 1 && o.nodes != 3 {
		return o, errors.New("-nodes must be 1 or 3")
	}
	if o.rounds < 1 || o.round <= 0 || o.locks < 1 {
		return o, errors.New("-rounds, -round and -locks must be positive")
	}
	known := o.only == "" || o.only == memoryOnly
	for _, x := range experiments {
		known = known || o.only == x.name
	}
	if !known {
		return o, fmt.Errorf("-only: there is no %q, but %sand %s", o.only, names, memoryOnly)
	}
	return o, nil
}

// measureEtcd compares the engine on etcd with plain writes to etcd and with the
// locks that etcd has itself.
func measureEtcd(ctx context.Context, args []string) error {
	o, err := etcdFlags(args)
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
		return measureOnce(ctx, servers, o.locks)
	}
	g, err := newGround(ctx, servers)
	if err != nil {
		return err
	}
	defer g.close()
	fmt.Printf("the engine on %s: medians of %s of %v each;\n", count(o.nodes, "etcd server"), count(o.rounds, "round"), o.round)
	fmt.Println("ratios are those of the same cycle: median (quartiles)")
	for _, x := range experiments {
		if o.only != "" && o.only != x.name {
			continue
		}
		e, err := x.of(ctx, g)
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		cycles, err := e.run(ctx, g, o.rounds, o.round)
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		fmt.Println()
		if err := e.report(os.Stdout, x.title, cycles); err != nil {
			return err
		}
		if o.profile != "" {
			if err := e.saveProfiles(ctx, servers, o.profile+"-"+x.name); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
	}
	return nil
}

func newGround(ctx context.Context, servers *etcdServers) (*ground, error) {
	g := &ground{servers: servers}
	for range gatewayCount {
		var gate *gateway
		client, err := servers.connect(ctx)
		if err == nil {
			g.clients = append(g.clients, client)
			gate, err = openGateway(ctx, servers.endpoints, etcd.DefaultForgetAfter)
		}
		if err != nil {
			g.close()
			return nil, err
		}
		g.gateways = append(g.gateways, gate)
	}
	return g, nil
}

func (g *ground) close() {
	for _, gate := range g.gateways {
		_ = gate.Close()
	}
	for _, client := range g.clients {
		_ = client.Close()
	}
}
