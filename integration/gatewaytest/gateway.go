package gatewaytest

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// Gateway is a Caddy process that serves locks.
type Gateway struct {
	*Client

	name    string
	dir     string
	config  string // the block of lock_gateway
	address string
	admin   string // the address of its administration API
	process *process.Process
}

// Start starts a gateway whose lock_gateway block has the given lines, and
// returns when it takes connections. It is gone at the test's end.
func Start(t testing.TB, name, config string) *Gateway {
	t.Helper()
	g := &Gateway{name: name, dir: t.TempDir(), config: config}
	// Between finding a free address and taking it, somebody else may take it.
	const attempts = 5
	for range attempts {
		g.address, g.admin = testaddr.Free(t), testaddr.Free(t)
		g.Client = NewClient(g.address)
		if g.start(t) {
			return g
		}
		if !g.addressTaken(t) {
			break
		}
	}
	t.Fatalf("%s does not start", name)
	return nil
}

// Address is the host and port that clients connect to.
func (g *Gateway) Address() string { return g.address }

// Kill ends the gateway at once.
func (g *Gateway) Kill(t testing.TB) {
	t.Helper()
	g.process.Kill(t)
}

// Pause freezes the gateway.
func (g *Gateway) Pause(t testing.TB) {
	t.Helper()
	g.process.Pause(t)
}

// Resume thaws the gateway.
func (g *Gateway) Resume(t testing.TB) {
	t.Helper()
	g.process.Resume(t)
}

// Stop ends the gateway as an operator does, which must work.
func (g *Gateway) Stop(t testing.TB) {
	t.Helper()
	g.process.Terminate(t)
}

// Configure gives the gateway another config, with which it is started next.
func (g *Gateway) Configure(config string) { g.config = config }

// Restart starts the gateway again, on the same address, after it ended.
func (g *Gateway) Restart(t testing.TB) {
	t.Helper()
	for !g.start(t) {
		if !g.addressTaken(t) {
			t.Fatalf("%s does not start again", g.name)
		}
	}
}

// Output returns what the gateway logged.
func (g *Gateway) Output(t testing.TB) string {
	t.Helper()
	return g.process.Output(t)
}

// Metrics returns what the gateway tells Prometheus.
func (g *Gateway) Metrics(t testing.TB) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.admin+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := g.http.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", g.name, err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: /metrics answered %d %s (%v)", g.name, res.StatusCode, text, err)
	}
	return text
}

// Inspect runs caddy lock-gateway, which asks the gateway, and returns what it prints.
func (g *Gateway) Inspect(t testing.TB, args ...string) string {
	t.Helper()
	out, err := g.TryInspect(t, args...)
	if err != nil {
		t.Fatalf("%s: caddy lock-gateway %v: %v\n%s", g.name, args, err, out)
	}
	return out
}

// TryInspect is Inspect where the command may fail.
func (g *Gateway) TryInspect(t testing.TB, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, Build(t), append([]string{"lock-gateway", "--address", g.admin}, args...)...)
	cmd.Env = []string{"HOME=" + g.dir}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// start starts the process. It reports whether it came to listen.
func (g *Gateway) start(t testing.TB) bool {
	t.Helper()
	path := filepath.Join(g.dir, "Caddyfile")
	config := strings.NewReplacer("ADMIN", g.admin, "SITE", g.address, "BLOCK", g.config).Replace(`{
	admin ADMIN
	persist_config off
	default_bind 127.0.0.1
}
http://SITE {
	lock_gateway {
BLOCK
	}
}
`)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// Caddys share ports. Two on one would not even notice.
	if conn, err := net.Dial("tcp", g.address); err == nil { //nolint:noctx // On loopback it does not hang.
		_ = conn.Close()
		return false
	}
	g.process = process.Start(t, process.Command{
		Name: g.name,
		Path: Build(t),
		Args: []string{"run", "--config", path},
		Dir:  g.dir,
		Env: []string{
			"PATH=" + os.Getenv("PATH"),
			"HOME=" + g.dir,
			"XDG_DATA_HOME=" + filepath.Join(g.dir, "data"),
			"XDG_CONFIG_HOME=" + filepath.Join(g.dir, "config"),
		},
	})
	up := false
	process.Await(t, g.name+" listens or ends", func() bool {
		conn, err := net.Dial("tcp", g.address) //nolint:noctx // On loopback it does not hang.
		if err == nil {
			up = true
			_ = conn.Close()
		}
		return up || g.process.HasExited()
	})
	return up
}

func (g *Gateway) addressTaken(t testing.TB) bool {
	t.Helper()
	return g.process == nil || strings.Contains(g.process.Output(t), "address already in use")
}
