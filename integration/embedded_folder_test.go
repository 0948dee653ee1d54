package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// bareGateway is a gateway that may end by itself, or see another disk than others.
type bareGateway struct {
	*gatewaytest.Client
	address string
	process *process.Process
	pidFile string
}

// startBare starts one, with its embedded server's lines. If there is a mount it is
// the type and the options of a file system of its own for dir.
func startBare(t *testing.T, dir string, mount []string, server ...string) *bareGateway {
	t.Helper()
	own := t.TempDir()
	g := &bareGateway{address: testaddr.Free(t), pidFile: filepath.Join(own, "pid")}
	g.Client = gatewaytest.NewClient(g.address)
	config := filepath.Join(own, "Caddyfile")
	text := fmt.Sprintf("{\n\tadmin off\n}\nhttp://%s {\n\tbind 127.0.0.1\n\tlock_gateway {\n%s\n\t}\n}\n",
		g.address, embeddedBackend(quick, append(server, "dir "+dir)...))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := process.Command{
		Name: "gateway",
		Path: gatewaytest.Build(t),
		Args: []string{"run", "--config", config, "--pidfile", g.pidFile},
		Dir:  own,
		Env:  []string{"PATH=" + os.Getenv("PATH"), "HOME=" + own},
	}
	if mount != nil {
		unshare, err := exec.LookPath("unshare")
		if err != nil || exec.Command(unshare, "--user", "--map-root-user", "--mount", "true").Run() != nil {
			t.Skip("this system lets nobody mount file systems of its own")
		}
		script := `mount -t "$1" -o "$2" none "$3" && shift 3 && exec "$@"`
		command.Args = append([]string{"--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", mount[0], mount[1], dir, command.Path}, command.Args...)
		command.Path = unshare
	}
	g.process = process.Start(t, command)
	return g
}

// awaitServing waits until the gateway's store answers.
func (g *bareGateway) awaitServing(t *testing.T) {
	t.Helper()
	process.Await(t, "the gateway serves", func() bool {
		if g.process.HasExited() {
			t.Fatal("the gateway has ended")
		}
		return g.Release(t.Context(), "1/nothing", gatewaytest.Named("nobody")).OK()
	})
}

// expectRefusal checks that the gateway ends by itself, and says why.
func (g *bareGateway) expectRefusal(t *testing.T, want ...string) {
	t.Helper()
	process.Await(t, "the gateway ends", g.process.HasExited)
	for _, w := range want {
		if !strings.Contains(g.process.Output(t), w) {
			t.Errorf("the log does not have %q", w)
		}
	}
}

// A folder that cannot be used is named when Caddy starts, with what is wrong.
func TestEmbeddedFolderIsRefused(t *testing.T) {
	t.Parallel()
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "locks")
		startBare(t, dir, nil).expectRefusal(t, dir+" does not exist")
	})
	t.Run("newer", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "owner.json"), []byte(`{"nats_server":"2.99.0"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		startBare(t, dir, nil).expectRefusal(t, dir, "was written by nats-server 2.99.0")
	})
	t.Run("read-only", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		startBare(t, dir, []string{"tmpfs", "ro"}).expectRefusal(t, dir+" cannot be written to", "read-only file system")
	})
	t.Run("of another process", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		first := startBare(t, dir, nil)
		first.awaitServing(t)
		startBare(t, dir, nil).expectRefusal(t, "another process has "+dir)
		// It is free as soon as that is dead.
		first.Take(t, "1/held", "")
		first.process.Kill(t)
		second := startBare(t, dir, nil)
		second.awaitServing(t)
		second.ExpectState(t, "1/held", 1, 0)
	})
	t.Run("of a server that is alone", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		alone := startBare(t, dir, nil)
		alone.awaitServing(t)
		alone.process.Kill(t)
		nodes := newEmbeddedNodes(t)
		startBare(t, dir, nil, nodes.cluster(0)).expectRefusal(t, dir, "a node of a cluster cannot use it")
	})
}

// The port for other nodes is somebody else's.
func TestEmbeddedListenIsTaken(t *testing.T) {
	t.Parallel()
	nodes := newEmbeddedNodes(t)
	listener, err := net.Listen("tcp", nodes.addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	startBare(t, t.TempDir(), nil, nodes.cluster(0)).expectRefusal(t, "cluster listen", "address already in use")
}

// When the disk is full nothing is granted and nothing is lost; when there is room
// again the gateway serves, without anybody's help.
func TestEmbeddedDiskIsFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := startBare(t, dir, []string{"tmpfs", "size=24m"})
	g.awaitServing(t)
	g.Take(t, "1/held", "")
	named := g.Take(t, "1/named", gatewaytest.Named("h"))

	for range 2 {
		empty := g.fillDisk(t, dir)
		refused := 0
		process.Await(t, "the full disk is noticed", func() bool {
			// Each writes, as long as there is room in the last page.
			for _, a := range []gatewaytest.Answer{
				g.Acquire(t.Context(), "1/new", gatewaytest.Named("n")),
				g.Release(t.Context(), "1/new", gatewaytest.Named("n")),
			} {
				if !a.OK() {
					refused++
				}
			}
			return refused > 3
		})
		empty()
		g.awaitServing(t)
		g.ExpectState(t, "1/held", 1, 0)
		g.ExpectTaken(t, "1/held", "")
		if again := g.Take(t, "1/named", gatewaytest.Named("h")); again.Token != named.Token {
			t.Errorf("the holder is %v, was %v", again, named)
		}
		g.Take(t, "1/new", gatewaytest.Named("n"))
	}
}

// A full disk of one node is of no concern to the clients of the others. It catches up
// once it has room.
func TestEmbeddedNodesDiskIsFull(t *testing.T) {
	t.Parallel()
	nodes := newEmbeddedNodes(t)
	others := []*gatewaytest.Gateway{nodes.start(t, 0, quick), nodes.start(t, 1, quick)}
	dir := nodes.dirs[2]
	g := startBare(t, dir, []string{"tmpfs", "size=48m"}, nodes.cluster(2))
	for _, o := range others {
		awaitServing(t, o)
	}
	g.awaitServing(t)
	g.Take(t, "1/held", "")
	load := startLoad(t, others...)
	empty := g.fillDisk(t, dir)
	load.expectProgress(t)
	load.expectProgress(t)
	empty()
	g.awaitServing(t)
	load.expectRecovery(t)
	load.stop(t)
	// It counts for the majority again.
	others[0].Kill(t)
	process.Await(t, "the two of them serve", func() bool {
		return g.Release(t.Context(), "1/nothing", gatewaytest.Named("nobody")).OK()
	})
	g.ExpectTaken(t, "1/held", "")
	others[1].AwaitState(t, "1/held", 1, 0)
}

// fillDisk writes a file until the gateway's disk is full, and returns what removes it.
func (g *bareGateway) fillDisk(t *testing.T, dir string) (empty func()) {
	t.Helper()
	pid, err := os.ReadFile(g.pidFile)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("/proc", strings.TrimSpace(string(pid)), "root", dir, "ballast")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; size /= 16 {
		piece := bytes.Repeat([]byte{1}, size)
		for err = nil; err == nil; {
			_, err = file.Write(piece)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
