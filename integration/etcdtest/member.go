package etcdtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockgateway/lockgateway/integration/process"
)

// Member is a server of a cluster.
type Member struct {
	Name string

	cluster      *Cluster
	dir          string
	client, peer string // addresses
	process      *process.Process
}

// Address is the host and port that clients connect to.
func (m *Member) Address() string { return m.client }

// Endpoint is the URL that clients connect to.
func (m *Member) Endpoint() string { return m.cluster.scheme() + m.client }

// Kill ends the server at once.
func (m *Member) Kill(t testing.TB) {
	t.Helper()
	m.process.Kill(t)
}

// Pause freezes the server.
func (m *Member) Pause(t testing.TB) {
	t.Helper()
	m.process.Pause(t)
}

// Resume thaws the server.
func (m *Member) Resume(t testing.TB) {
	t.Helper()
	m.process.Resume(t)
}

// Restart starts a server again that was killed, on its data and addresses. It
// returns when the server answers.
func (m *Member) Restart(t testing.TB) {
	t.Helper()
	for m.start(t); !m.awaitStart(t); m.start(t) {
		if !m.addressTaken(t) {
			t.Fatalf("%s does not start again", m.Name)
		}
	}
}

// start starts the process.
func (m *Member) start(t testing.TB) {
	t.Helper()
	m.process = process.Start(t, process.Command{
		Name: m.Name,
		Path: Build(t),
		Args: m.flags(),
		Dir:  m.dir,
		Env:  []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.dir},
	})
}

func (m *Member) flags() []string {
	o := m.cluster.options
	var peers []string
	for _, other := range m.cluster.members {
		peers = append(peers, fmt.Sprintf("%s=http://%s", other.Name, other.peer))
	}
	flags := []string{
		"--name=" + m.Name,
		"--data-dir=" + filepath.Join(m.dir, "data"),
		"--listen-client-urls=" + m.Endpoint(),
		"--advertise-client-urls=" + m.Endpoint(),
		"--listen-peer-urls=http://" + m.peer,
		"--initial-advertise-peer-urls=http://" + m.peer,
		"--initial-cluster=" + strings.Join(peers, ","),
		"--initial-cluster-token=" + m.cluster.token,
		"--logger=zap",
		"--log-level=info",
	}
	if o.QuotaBytes > 0 {
		flags = append(flags, fmt.Sprintf("--quota-backend-bytes=%d", o.QuotaBytes))
	}
	if o.KeepRevisions > 0 {
		flags = append(flags, "--auto-compaction-mode=revision", "--auto-compaction-retention="+strconv.Itoa(o.KeepRevisions))
	}
	if o.TLS {
		c := m.cluster.Certificates
		flags = append(flags, "--client-cert-auth", "--trusted-ca-file="+c.CA, "--cert-file="+c.ServerCert, "--key-file="+c.ServerKey)
	}
	if o.Heartbeat > 0 {
		flags = append(flags, fmt.Sprintf("--heartbeat-interval=%d", o.Heartbeat.Milliseconds()))
	}
	if o.Election > 0 {
		flags = append(flags, fmt.Sprintf("--election-timeout=%d", o.Election.Milliseconds()))
	}
	if o.Checkpoint {
		flags = append(flags, "--feature-gates=LeaseCheckpoint=true,LeaseCheckpointPersist=true")
	}
	return flags
}

// awaitStart waits until the server takes connections, or reports false if it
// ended instead.
func (m *Member) awaitStart(t testing.TB) bool {
	t.Helper()
	up := false
	process.Await(t, m.Name+" listens or ends", func() bool {
		conn, err := net.Dial("tcp", m.client) //nolint:noctx // On loopback it does not hang.
		if err == nil {
			up = true
			_ = conn.Close()
		}
		return up || m.process.HasExited()
	})
	return up
}

// addressTaken reports whether the server ended because somebody else had one
// of its addresses.
func (m *Member) addressTaken(t testing.TB) bool {
	t.Helper()
	return m.process.HasExited() && strings.Contains(m.process.Output(t), "address already in use")
}

// status asks the server itself who leads.
func (m *Member) status(ctx context.Context, client *clientv3.Client) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return client.Status(ctx, m.Endpoint())
}
