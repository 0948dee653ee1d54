package natstest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/integration/process"
)

// Member is a server of a cluster.
type Member struct {
	Name string

	cluster             *Cluster
	dir                 string
	client, route, leaf string // addresses
	process             *process.Process
}

// Address is the host and port that clients connect to.
func (m *Member) Address() string { return m.client }

// URL is what clients connect to.
func (m *Member) URL() string { return "nats://" + m.client }

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
// returns when the server listens.
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
	path := filepath.Join(m.dir, "nats.conf")
	if err := os.WriteFile(path, []byte(m.config()), 0o600); err != nil {
		t.Fatal(err)
	}
	m.process = process.Start(t, process.Command{
		Name: m.Name,
		Path: m.cluster.binary,
		Args: []string{"--config", path},
		Dir:  m.dir,
		Env:  []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.dir},
	})
}

// patience is how long a server waits for a handshake or a login, in seconds.
const patience = int(process.Soon / time.Second)

func (m *Member) config() string {
	o := m.cluster.options
	var c strings.Builder
	write := func(format string, args ...any) { fmt.Fprintf(&c, format+"\n", args...) }
	write("server_name: %q", m.Name)
	write("server_tags: [%q]", m.Name)
	write("listen: %q", m.client)
	if !o.WithoutJetStream {
		write("jetstream {")
		write("  store_dir: %q", filepath.Join(m.dir, "data"))
		if o.SyncAlways {
			write("  sync_interval: always")
		}
		if o.Domain != "" {
			write("  domain: %q", o.Domain)
		}
		write("}")
	}
	if o.Domain != "" {
		write("leafnodes { listen: %q }", m.leaf)
	}
	if o.Hub != nil {
		write("leafnodes { remotes: [ { url: %q } ] }", "nats-leaf://"+o.Hub.members[0].leaf)
	}
	if others := m.cluster.Others(m); len(others) > 0 {
		var routes []string
		for _, other := range others {
			routes = append(routes, "nats-route://"+m.cluster.route(m, other))
		}
		write("cluster {")
		write("  name: %q, listen: %q, routes: %s, no_advertise: %t", m.cluster.name, m.route, quoted(routes), o.NoAdvertise)
		if o.Relayed {
			write("  advertise: %q", nowhere)
		}
		write("}")
	}
	if o.TLS {
		f := m.cluster.Certificates
		write("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true, timeout: %d }", f.ServerCert, f.ServerKey, f.CA, patience)
	}
	if o.Auth {
		publish, subscribe := o.subjects()
		may := fmt.Sprintf("permissions: { publish: %s, subscribe: %s }", quoted(publish), quoted(subscribe))
		write("authorization { timeout: %d, users: [", patience)
		write("  { user: %q, password: %q }", Root, RootPassword)
		write("  { user: %q, password: %q, %s }", User, UserPassword, may)
		write("  { nkey: %q, %s }", m.cluster.nkey, may)
		write("] }")
	}
	if o.Operator {
		m.cluster.operator.write(write)
	}
	if o.Token != "" {
		write("authorization { timeout: %d, token: %q }", patience, o.Token)
	}
	return c.String()
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
