package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

type backendsOptions struct {
	cycles int
	round  time.Duration
	locks  int
}

// backend is one of those that are compared: a site, and the servers that it uses, if
// it has none of its own.
type backend struct {
	name string
	site
	servers interface{ stop() error } // or nil
}

// startBackends starts what all backends need.
func startBackends(ctx context.Context, dir, binary string) (all []backend, err error) {
	add := func(name, config string, servers interface{ stop() error }) {
		b := backend{name: name, servers: servers}
		var siteErr error
		b.site, siteErr = newSite(strings.TrimSpace("lock_gateway " + config))
		all, err = append(all, b), errors.Join(err, siteErr)
	}
	add("memory", "", nil)
	for _, interval := range []string{"2m", "always"} {
		folder := filepath.Join(dir, "embedded-"+interval)
		err = errors.Join(err, os.Mkdir(folder, 0o700))
		add("embedded, sync_interval "+interval, embeddedConfig(folder, interval, ""), nil)
	}
	config, others, nodesErr := startNodes(ctx, dir, binary)
	add("embedded, 3 nodes", config, others)
	if err := errors.Join(err, nodesErr); err != nil {
		return all, err
	}
	for _, nodes := range []int{1, 3} {
		for _, always := range []bool{false, true} {
			folder := filepath.Join(dir, fmt.Sprintf("nats-%d-%v", nodes, always))
			if err := errors.Join(err, os.Mkdir(folder, 0o700)); err != nil {
				return all, err
			}
			servers, err := startNATS(ctx, folder, nodes, always)
			if err != nil {
				return all, err
			}
			name := "NATS, " + count(nodes, "server")
			if always {
				name += ", sync_interval always"
			}
			add(name, fmt.Sprintf("{\n\tbackend nats {\n\t\tservers %s\n\t}\n}", strings.Join(servers.urls, " ")), servers)
		}
		folder := filepath.Join(dir, fmt.Sprintf("etcd-%d", nodes))
		if err := errors.Join(err, os.Mkdir(folder, 0o700)); err != nil {
			return all, err
		}
		servers, err := startEtcd(ctx, folder, nodes)
		if err != nil {
			return all, err
		}
		add("etcd, "+count(nodes, "member"), fmt.Sprintf("{\n\tbackend etcd {\n\t\tendpoints %s\n\t}\n}", strings.Join(servers.endpoints, " ")), servers)
	}
	return all, err
}

// embeddedConfig is that of an embedded server.
func embeddedConfig(folder, interval, cluster string) string {
	return fmt.Sprintf("{\n\tbackend nats {\n\t\tembedded {\n\t\t\tdir %s\n\t\t\tsync_interval %s\n%s\t\t}\n\t}\n}", folder, interval, cluster)
}

// startNodes starts all but the first of three nodes in Caddys of their own, and returns
// the config of the first.
func startNodes(ctx context.Context, dir, binary string) (config string, others members, err error) {
	routes, err := freeAddresses(3)
	if err != nil {
		return "", nil, err
	}
	for i, address := range routes {
		home := filepath.Join(dir, fmt.Sprintf("node-%d", i+1))
		folder := filepath.Join(home, "data")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", others, err
		}
		of := embeddedConfig(folder, "always",
			fmt.Sprintf("\t\t\tcluster {\n\t\t\t\tnode node-%d\n\t\t\t\tlisten %s\n\t\t\t\troutes %s\n\t\t\t}\n", i+1, address, strings.Join(routes, " ")))
		if i == 0 {
			config = of
			continue
		}
		node, err := newSite("lock_gateway " + of)
		if err != nil {
			return "", others, err
		}
		s, err := startServer(ctx, home, binary, []site{node})
		if err != nil {
			return "", others, err
		}
		others = append(others, s)
	}
	return config, others, nil
}

// measureBackends compares uncontended pairs through Caddy on all backends; and
// measures how long a restart takes that finds many locks of an embedded server.
func measureBackends(ctx context.Context, args []string) (err error) {
	var o backendsOptions
	flags := flag.NewFlagSet("backends", flag.ExitOnError)
	flags.IntVar(&o.cycles, "rounds", 20, "how often each backend is measured, interleaved with the others")
	flags.DurationVar(&o.round, "round", 250*time.Millisecond, "how long each time")
	flags.IntVar(&o.locks, "locks", 100_000, "how many locks an embedded server has at the restart")
	_ = flags.Parse(args) // exits
	if o.cycles < 1 || o.round <= 0 || o.locks < 1 {
		return errors.New("-rounds, -round and -locks must be positive")
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
	all, err := startBackends(ctx, dir, binary)
	defer func() {
		for _, b := range all {
			if b.servers != nil {
				err = errors.Join(err, b.servers.stop())
			}
		}
	}()
	if err != nil {
		return err
	}
	first := newUUID()
	if err := measurePairs(ctx, dir, binary, all, first, o); err != nil {
		return err
	}
	return measureRestart(ctx, dir, binary, all[restarted], first, o.locks)
}

// restarted is the backend that is killed with many locks, an embedded server.
const restarted = 1

// measurePairs compares backends. Then it makes one of them hold many locks, whose
// names begin with first, and kills Caddy.
func measurePairs(ctx context.Context, dir, binary string, all []backend, first string, o backendsOptions) error {
	var sites []site
	for _, b := range all {
		sites = append(sites, b.site)
	}
	s, err := startServer(ctx, dir, binary, sites)
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	for _, site := range sites {
		if err := awaitLocks(ctx, site); err != nil {
			return err
		}
	}
	fmt.Printf("uncontended pairs through Caddy: medians of %d rounds of %v each; ratios to the memory round of the same cycle\n", o.cycles, o.round)
	if err := compareBackends(ctx, s, all, o); err != nil {
		return err
	}
	return holdMany(sites[restarted], first, o.locks)
}

// awaitLocks returns when a site acquires and releases.
func awaitLocks(ctx context.Context, of site) error {
	return expectInTime(ctx, of, "/v1/"+mutexMax+"/"+newUUID()+"/release", `{"released":false}`)
}

// expectInTime repeats a request until its answer is as expected.
func expectInTime(ctx context.Context, of site, path, body string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		c, err := dial(of.address)
		if err != nil {
			return err
		}
		err = c.expect(requestFor(of.address, path), body)
		c.close()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Millisecond):
		}
	}
}

func compareBackends(ctx context.Context, s *server, all []backend, o backendsOptions) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "clients\tbackend\trequests/s\tp50 us\tCaddy's CPU us/request\trequests/s to memory\tp50 to memory\t")
	for _, clients := range []int{1, 8, 64} {
		var loads []*load
		for _, b := range all {
			l, err := newLoad(clients, b.site, b.site)
			if err != nil {
				return err
			}
			defer l.close()
			loads = append(loads, l)
			if _, err := l.round(s, pairs, o.round); err != nil { // to warm up
				return err
			}
		}
		samples := make([][]sample, len(loads))
		for range o.cycles {
			for i, l := range loads {
				got, err := l.round(s, pairs, o.round)
				if err != nil {
					return fmt.Errorf("%s, %d clients: %w", all[i].name, clients, err)
				}
				samples[i] = append(samples[i], got)
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		for i, b := range all {
			var rates, p50s, cpus, rateRatios, ratios []float64
			for cycle, got := range samples[i] {
				rates, p50s, cpus = append(rates, got.rate), append(p50s, got.p50), append(cpus, got.cpu)
				rateRatios = append(rateRatios, got.rate/samples[0][cycle].rate)
				ratios = append(ratios, got.p50/samples[0][cycle].p50)
			}
			fmt.Fprintf(table, "%d\t%s\t%.0f\t%.0f\t%.0f\t%v\t%v\t\n", clients, b.name,
				spreadOf(rates).median, spreadOf(p50s).median, spreadOf(cpus).median, spreadOf(rateRatios), spreadOf(ratios))
		}
	}
	return table.Flush()
}

// measureRestart tells how long the process takes until it serves the locks of the one
// that was killed.
func measureRestart(ctx context.Context, dir, binary string, of backend, first string, locks int) error {
	began := time.Now()
	s, err := startServer(ctx, dir, binary, []site{of.site})
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	if err := expectInTime(ctx, of.site, "/v1/"+mutexMax+"/"+first+"-0/value", `{"value":1}`); err != nil {
		return err
	}
	fmt.Printf("killed with %d locks held, and started again: %v until the locks are served, the start of the process included\n",
		locks, time.Since(began).Round(time.Millisecond))
	return nil
}

// holdMany acquires so many locks.
func holdMany(of site, name string, locks int) error {
	const clients = 64
	errs := make([]error, clients)
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			c, err := dial(of.address)
			if err != nil {
				errs[n] = err
				return
			}
			defer c.close()
			for i := n; i < locks && err == nil; i += clients {
				err = c.expect(requestFor(of.address, fmt.Sprintf("/v1/%s/%s-%d/acquire", mutexMax, name, i)), acquiredBody)
			}
			errs[n] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
