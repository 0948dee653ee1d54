package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// acquiredBody is the answer to an acquire of a free mutex.
const acquiredBody = `{"acquired":true,"value":1}`

// baselines are the sites that the gateway can be measured against. All answer
// with the body of an acquire.
var baselines = map[string]string{
	// What an operator would write. It sends two headers less, and it looks for
	// placeholders in the body's braces and checks that it is JSON.
	"respond": "respond `" + acquiredBody + "`",

	// All headers of the gateway, for which Caddy needs a second handler.
	"headers": "header {\n\tCache-Control no-store\n\tX-Content-Type-Options nosniff\n}\nrespond `" + acquiredBody + "`",
}

// metrics are what a round measures, in the order of the table.
var metrics = []struct {
	name string
	of   func(sample) float64
	goal goal // against respond; for whole pairs only
}{
	{"requests/s", func(s sample) float64 { return s.rate }, atLeast(0.95)},
	{"p50 us", func(s sample) float64 { return s.p50 }, atMost(1.1)},
	{"server CPU us/request", func(s sample) float64 { return s.cpu }, atMost(1.05)},
}

type httpOptions struct {
	clients  []int
	cycles   int
	round    time.Duration
	baseline string
	profile  string
}

func httpFlags(args []string) (httpOptions, error) {
	var o httpOptions
	flags := flag.NewFlagSet("http", flag.ExitOnError)
	clients := flags.String("clients", "1,8,64", "numbers of clients, each a connection")
	flags.IntVar(&o.cycles, "pairs", 60, "how often each workload is measured, interleaved with the others")
	flags.DurationVar(&o.round, "round", 80*time.Millisecond, "how long each time")
	flags.StringVar(&o.baseline, "against", "respond", "respond, or headers: respond with the gateway's headers")
	flags.StringVar(&o.profile, "profile", "", "afterwards write CPU profiles of the server, into files that start like this")
	_ = flags.Parse(args) // exits
	for field := range strings.SplitSeq(*clients, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-clients: %q is not a number of clients", field)
		}
		o.clients = append(o.clients, n)
	}
	if baselines[o.baseline] == "" {
		return o, fmt.Errorf("-against: there is no %q", o.baseline)
	}
	if o.cycles < 1 || o.round <= 0 {
		return o, fmt.Errorf("-pairs and -round must be positive")
	}
	return o, nil
}

// measureHTTP compares uncontended acquires and releases through Caddy with
// static answers of the same process.
func measureHTTP(ctx context.Context, args []string) error {
	o, err := httpFlags(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	moduleDir, err := gatewayDir(ctx)
	if err != nil {
		return err
	}
	binary, err := buildCaddy(ctx, dir, moduleDir, "./cmd/caddy")
	if err != nil {
		return err
	}
	static, err := newSite(baselines[o.baseline])
	if err != nil {
		return err
	}
	locks, err := newSite("lock_gateway")
	if err != nil {
		return err
	}
	s, err := startServer(ctx, dir, binary, []site{static, locks})
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()

	fmt.Printf("memory backend through Caddy against %q: medians of %d rounds of %v each;\n", o.baseline, o.cycles, o.round)
	fmt.Println("ratios to the respond round of the same cycle: median (quartiles)")
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "clients\tworkload\tmeasure\trespond\tgateway\tratio\tgoal\t")
	for _, clients := range o.clients {
		l, err := newLoad(clients, static, locks)
		if err != nil {
			return err
		}
		err = compare(ctx, table, s, l, o)
		if err == nil && o.profile != "" {
			err = profileRounds(ctx, s, l, o)
		}
		l.close()
		if err != nil {
			return fmt.Errorf("%d clients: %w", clients, err)
		}
	}
	return table.Flush()
}

// compare runs all workloads in turn, forwards and backwards, and adds to the
// table.
func compare(ctx context.Context, table *tabwriter.Writer, s *server, l *load, o httpOptions) error {
	// To warm up; and releases have more than enough to release.
	for _, kind := range []workload{respond, pairs, acquireOnly, acquireOnly} {
		if _, err := l.round(s, kind, o.round); err != nil {
			return err
		}
	}
	var samples [workloads][]sample
	for cycle := range o.cycles {
		for i := range workloads {
			kind := i
			if cycle%2 == 1 {
				kind = workloads - 1 - i
			}
			duration := o.round
			if kind == releaseOnly {
				duration = duration * 3 / 4 // releases may be faster than acquires
			}
			got, err := l.round(s, kind, duration)
			if err != nil {
				return fmt.Errorf("%v: %w", kind, err)
			}
			samples[kind] = append(samples[kind], got)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	for _, kind := range []workload{pairs, acquireOnly, releaseOnly, control} {
		for _, m := range metrics {
			var static, gateway, ratios []float64
			for i, got := range samples[kind] {
				static = append(static, m.of(samples[respond][i]))
				gateway = append(gateway, m.of(got))
				ratios = append(ratios, gateway[i]/static[i])
			}
			ratio, goal := spreadOf(ratios), ""
			if kind == pairs {
				goal = m.goal.judge(ratio.median)
			}
			fmt.Fprintf(table, "%d\t%v\t%s\t%.1f\t%.1f\t%v\t%s\t\n", len(l.workers), kind, m.name,
				spreadOf(static).median, spreadOf(gateway).median, ratio, goal)
		}
	}
	return nil
}
