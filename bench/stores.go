package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// gatewayCount is how many gateways share a lock, where several do.
const gatewayCount = 3

// idleTime is how long stores keep idle records, as they do unless told otherwise.
const idleTime = time.Hour

// storeOptions are those of a measurement of gateways on a store.
type storeOptions struct {
	nodes   int
	rounds  int
	round   time.Duration
	only    string
	profile string
}

// storeFlags reads flags, of which others may be defined already. There are more
// things to measure, which are left out unless they are asked for.
func storeFlags(flags *flag.FlagSet, args []string, alone ...string) (storeOptions, error) {
	var names []string
	for _, x := range experiments {
		names = append(names, x.name)
	}
	known := strings.Join(slices.Concat(names, alone), ", ")
	var o storeOptions
	flags.IntVar(&o.nodes, "nodes", 1, "how many servers keep the data: 1 or 3")
	flags.IntVar(&o.rounds, "rounds", 15, "how often each cell is measured, interleaved with the others")
	flags.DurationVar(&o.round, "round", 400*time.Millisecond, "how long each time")
	flags.StringVar(&o.only, "only", "", "just one of "+known+"; "+strings.Join(alone, " and ")+" is left out otherwise")
	flags.StringVar(&o.profile, "profile", "", "afterwards write CPU profiles of this process, into files that start like this")
	_ = flags.Parse(args) // exits
	if o.nodes != 1 && o.nodes != 3 {
		return o, errors.New("-nodes must be 1 or 3")
	}
	if o.rounds < 1 || o.round <= 0 {
		return o, errors.New("-rounds and -round must be positive")
	}
	if o.only == "" || slices.Contains(names, o.only) || slices.Contains(alone, o.only) {
		return o, nil
	}
	return o, fmt.Errorf("-only: there is no %q, but %s", o.only, known)
}

// measureStore compares gateways on a store with plain writes to it and with the
// locks that it has itself. The name is that of what the store runs on.
func measureStore(ctx context.Context, s store, name string, o storeOptions) error {
	g, err := newGround(ctx, s)
	if err != nil {
		return err
	}
	defer g.close()
	fmt.Printf("the engine on %s: medians of %s of %v each;\n", name, count(o.rounds, "round"), o.round)
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
			if err := e.saveProfiles(ctx, s, o.profile+"-"+x.name); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
	}
	return nil
}

func newGround(ctx context.Context, s store) (*ground, error) {
	g := &ground{store: s}
	for i := range gatewayCount {
		gate, err := openGateway(ctx, s, i, idleTime)
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
}
