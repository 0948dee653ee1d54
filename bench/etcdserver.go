package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// etcdServers is one etcd server, or several that keep the same data, as child
// processes on the loopback interface.
type etcdServers struct {
	members   []*server
	endpoints []string
}

// startEtcd runs n servers with their data in dir, and returns when they serve.
func startEtcd(ctx context.Context, dir string, n int) (*etcdServers, error) {
	if err := checkDisk(dir); err != nil {
		return nil, err
	}
	binary, err := etcdBinary(ctx)
	if err != nil {
		return nil, err
	}
	var peers, addresses []string
	for range 2 * n {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
	}
	clients, cluster := addresses[:n], addresses[n:]
	for i, address := range cluster {
		peers = append(peers, fmt.Sprintf("etcd-%d=http://%s", i+1, address))
	}
	e := new(etcdServers)
	for i := range n {
		client, peer := "http://"+clients[i], "http://"+cluster[i]
		s, err := launch(binary, []string{
			fmt.Sprintf("--name=etcd-%d", i+1),
			"--data-dir=" + filepath.Join(dir, fmt.Sprintf("etcd-%d", i+1)),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=" + strings.Join(peers, ","),
			"--log-level=error",
		}, nil)
		if err != nil {
			return nil, errors.Join(err, e.stop())
		}
		e.members = append(e.members, s)
		e.endpoints = append(e.endpoints, client)
	}
	for i, s := range e.members {
		if err := s.waitFor(ctx, clients[i]); err != nil {
			return nil, errors.Join(err, e.stop())
		}
	}
	return e, nil
}

// etcdBinary returns the path of the server that go.mod pins. The first call
// compiles it, which takes a minute; Go's build cache keeps it.
func etcdBinary(ctx context.Context) (string, error) {
	// -n does all but run it.
	out, err := exec.CommandContext(ctx, "go", "tool", "-n", "go.etcd.io/etcd/server/v3").Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("building etcd (run this in bench/): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// checkDisk refuses a folder in memory, where writes cost next to nothing.
func checkDisk(dir string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("looking at %s: %w", dir, err)
	}
	if s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC {
		return fmt.Errorf("%s is not on a disk; set TMPDIR to a folder that is", os.TempDir())
	}
	return nil
}

// connect returns a client of all members, which has found them serving.
func (e *etcdServers) connect(ctx context.Context) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: e.endpoints, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for { // a cluster refuses requests until it has a leader
		if _, err = client.Get(ctx, "any"); err == nil {
			return client, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("etcd does not answer: %w", errors.Join(err, client.Close()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// compact drops all revisions but the latest, and returns when they are gone.
func (e *etcdServers) compact(ctx context.Context, client *clientv3.Client) error {
	latest, err := client.Get(ctx, "any")
	if err == nil {
		_, err = client.Compact(ctx, latest.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // nothing was written since the last time
		return fmt.Errorf("compacting: %w", err)
	}
	return nil
}

// cpuTime is that of all servers.
func (e *etcdServers) cpuTime() (sum time.Duration) {
	for _, s := range e.members {
		sum += s.cpuTime()
	}
	return sum
}

func (e *etcdServers) stop() (err error) {
	for _, s := range e.members {
		err = errors.Join(err, s.stop())
	}
	return err
}
