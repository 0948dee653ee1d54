package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsServers is one NATS server with JetStream, or several that keep the same
// data.
type natsServers struct {
	members
	urls  []string
	conns []*natsgo.Conn
	kv    []jetstream.KeyValue // the gateways' bucket, over each connection
}

// startNATS runs n servers with their data in dir, and returns when they serve
// and have the bucket.
func startNATS(ctx context.Context, dir string, n int, syncAlways bool) (*natsServers, error) {
	if err := checkDisk(dir); err != nil {
		return nil, err
	}
	binary, err := toolBinary(ctx, "github.com/nats-io/nats-server/v2")
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(2 * n)
	if err != nil {
		return nil, err
	}
	clients, routes := addresses[:n], addresses[n:]
	s := new(natsServers)
	for i := range n {
		name := fmt.Sprintf("nats-%d", i+1)
		path := filepath.Join(dir, name+".conf")
		config := natsConfig(name, clients[i], filepath.Join(dir, name), routes, i, syncAlways)
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			return nil, errors.Join(err, s.stop())
		}
		member, err := launch(binary, []string{"--config", path}, nil)
		if err != nil {
			return nil, errors.Join(err, s.stop())
		}
		s.members = append(s.members, member)
		s.urls = append(s.urls, "nats://"+clients[i])
	}
	for i, member := range s.members {
		if err := member.waitFor(ctx, clients[i]); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	err = s.makeBucket(ctx)
	for i := 0; i < gatewayCount && err == nil; i++ {
		err = s.connect(ctx, i)
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// natsConfig is that of the i-th server. It is in a cluster if there are several.
func natsConfig(name, address, dir string, routes []string, i int, syncAlways bool) string {
	var c strings.Builder
	fmt.Fprintf(&c, "server_name: %q\nlisten: %q\n", name, address)
	fmt.Fprintf(&c, "jetstream {\n  store_dir: %q\n", dir)
	if syncAlways {
		fmt.Fprintln(&c, "  sync_interval: always")
	}
	fmt.Fprintln(&c, "}")
	if len(routes) > 1 {
		fmt.Fprintf(&c, "cluster {\n  name: bench\n  listen: %q\n  routes: [\"nats-route://%s\"]\n}\n",
			routes[i], strings.Join(routes, `", "nats-route://`))
	}
	return c.String()
}

// makeBucket makes the bucket as gateways do, so that raw writes have the same.
func (s *natsServers) makeBucket(ctx context.Context) error {
	opened, err := s.open(0, idleTime) //nolint:contextcheck // It is closed below.
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for { // a cluster refuses requests until it has a leader
		if _, err = opened.Get(ctx, "any"); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("NATS does not serve: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// connect makes the i-th client, of the same server as the i-th gateway.
func (s *natsServers) connect(ctx context.Context, i int) error {
	conn, err := natsgo.Connect(s.urls[i%len(s.urls)], natsgo.Timeout(answerTimeout))
	if err != nil {
		return err
	}
	s.conns = append(s.conns, conn)
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	kv, err := js.KeyValue(ctx, natsBucket)
	if err != nil {
		return fmt.Errorf("looking for the bucket: %w", err)
	}
	s.kv = append(s.kv, kv)
	return nil
}

func (s *natsServers) stop() error {
	for _, conn := range s.conns {
		conn.Close()
	}
	return s.members.stop()
}
