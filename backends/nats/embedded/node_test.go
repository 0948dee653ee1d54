package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockgateway/lockgateway/backends/nats"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/lock"
	"github.com/lockgateway/lockgateway/lock/locktest"
)

// startNode starts a server. It ends with the test.
func startNode(t *testing.T, s serverSettings) *node {
	t.Helper()
	n := mustStart(t, s, zap.NewNop())
	t.Cleanup(func() {
		if err := n.leave(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// mustStart starts a server, which the caller leaves.
func mustStart(t *testing.T, s serverSettings, logger *zap.Logger) *node {
	t.Helper()
	n, err := share(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.start(logger); err != nil {
		t.Fatal(errors.Join(err, n.leave()))
	}
	return n
}

// open opens what a gateway runs.
func open(t *testing.T, n *node) lock.Backend {
	t.Helper()
	// It is long enough for a busy machine: nothing fails here.
	const patience = 30 * time.Second
	store, err := nats.Open(nats.Options{
		Connection:     nats.Connection{Local: n, DialTimeout: patience},
		Name:           "locks",
		RequestTimeout: patience,
		SessionTTL:     patience,
		ForgetAfter:    time.Hour,
		Logger:         zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return replicated.New(store, replicated.Options{RequestTimeout: patience})
}

// Every promise of the contract.
func TestConformance(t *testing.T) {
	n := startNode(t, serverSettings{dir: t.TempDir(), given: true})
	locktest.Run(t, func(t *testing.T) lock.Backend { return open(t, n) })
}

// testCluster is three nodes in this process.
type testCluster struct {
	nodes  []*node
	unused string // an address that is free
}

// startCluster starts them. They end with the test.
func startCluster(t *testing.T) testCluster {
	t.Helper()
	var (
		addresses []string
		listeners []net.Listener
	)
	for range 4 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, l.Addr().String())
		listeners = append(listeners, l)
	}
	for _, l := range listeners { // all at once, so that no port is given twice
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c := testCluster{unused: addresses[3]}
	for i, address := range addresses[:3] {
		c.nodes = append(c.nodes, startNode(t, serverSettings{
			dir: t.TempDir(), given: true, syncInterval: time.Minute,
			cluster: &Cluster{Name: "test", Node: fmt.Sprint("node-", i), Listen: address, Routes: addresses[:3]},
		}))
	}
	return c
}

// And through each of three nodes, of which two do not lead.
func TestConformanceOfACluster(t *testing.T) {
	nodes := startCluster(t).nodes
	var next atomic.Int64
	locktest.Run(t, func(t *testing.T) lock.Backend { return open(t, nodes[int(next.Add(1))%len(nodes)]) })
}

// A server that cannot go on is replaced; what it had stays.
func TestServerThatGivesUpIsReplaced(t *testing.T) {
	n := startNode(t, serverSettings{dir: t.TempDir(), given: true})
	b := open(t, n)
	defer b.Close()
	key, err := lock.NewKey("1", "held")
	if err != nil {
		t.Fatal(err)
	}
	if res, err := b.Acquire(t.Context(), lock.AcquireRequest{Key: key}); err != nil || !res.Acquired {
		t.Fatalf("acquiring gave %v, error %v", res, err)
	}
	n.mu.Lock()
	first, changed := n.server, n.changed
	n.mu.Unlock()
	// As it does when the disk is full.
	if err := first.ShutdownJetStream(); err != nil {
		t.Fatal(err)
	}
	<-changed
	var v lock.Value
	for range 100 {
		if v, err = b.Value(t.Context(), key, false); err == nil {
			break
		}
		if !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil || v.Held != 1 {
		t.Errorf("afterwards the lock has %d holders, error %v", v.Held, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server == first || n.server == nil {
		t.Error("the server was not replaced")
	}
}

// What cannot be read must not be taken for nothing, as if no lock were held.
func TestDamagedDataIsRefused(t *testing.T) {
	s := serverSettings{dir: t.TempDir(), given: true}
	n := mustStart(t, s, zap.NewNop())
	b := open(t, n)
	key, err := lock.NewKey("1", "held")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(t.Context(), lock.AcquireRequest{Key: key}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Close(), n.leave()); err != nil {
		t.Fatal(err)
	}
	meta := filepath.Join(s.dir, "jetstream", "$G", "streams", "KV_locks", "meta.inf")
	if err := os.WriteFile(meta, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err = share(s); err != nil {
		t.Fatal(err)
	}
	err = n.start(zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), s.dir) || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("starting on damaged data gave the error %v", err)
	}
	if err := n.leave(); err != nil {
		t.Error(err)
	}
}

// A server that finds a damaged message drops all that come after it, and says nothing.
func TestMissingDataIsRefused(t *testing.T) {
	s := serverSettings{dir: t.TempDir(), given: true}
	n := mustStart(t, s, zap.NewNop())
	b := open(t, n)
	for i := range 20 {
		key, err := lock.NewKey("1", fmt.Sprint("held-", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Acquire(t.Context(), lock.AcquireRequest{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(b.Close(), n.leave()); err != nil {
		t.Fatal(err)
	}
	blocks, err := filepath.Glob(filepath.Join(s.dir, "jetstream", "$G", "streams", "KV_locks", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("the data are in %v, error %v", blocks, err)
	}
	text, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 0xff
	if err := errors.Join(os.WriteFile(blocks[0], text, 0o600), os.Remove(filepath.Join(filepath.Dir(blocks[0]), "index.db"))); err != nil {
		t.Fatal(err)
	}
	if n, err = share(s); err != nil {
		t.Fatal(err)
	}
	err = n.start(zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), s.dir) || !strings.Contains(err.Error(), "KV_locks ends with message") {
		t.Errorf("starting on what is left gave the error %v", err)
	}
	if err := n.leave(); err != nil {
		t.Error(err)
	}

	// Where writes are synced now and then only, the same may be a power failure.
	relaxed := s
	relaxed.syncInterval = time.Minute
	core, logs := observer.New(zap.ErrorLevel)
	n = mustStart(t, relaxed, zap.New(core))
	if logs.FilterMessageSnippet("what was written last is gone").Len() != 1 {
		t.Errorf("the log has %v", logs.All())
	}
	if err := n.leave(); err != nil {
		t.Error(err)
	}

	// And from now on that is all there is.
	if err := mustStart(t, s, zap.NewNop()).leave(); err != nil {
		t.Error(err)
	}
}

// A config may be loaded while the server of the one before is stopping.
func TestStartWaitsForTheServerBefore(t *testing.T) {
	s := serverSettings{dir: t.TempDir(), given: true}
	before, err := share(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.start(zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- before.leave() }()
	<-before.ctx.Done()
	after := startNode(t, s)
	if after == before {
		t.Error("it is the same")
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestDialWaitsForTheServer(t *testing.T) {
	n, err := share(serverSettings{dir: t.TempDir(), given: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.leave(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := n.Dial(ctx); err == nil || !strings.Contains(err.Error(), "not started yet") {
		t.Errorf("dialing what does not run gave the error %v", err)
	}
	dialed := make(chan error, 1)
	go func() {
		conn, err := n.Dial(t.Context())
		if err == nil {
			err = conn.Close()
		}
		dialed <- err
	}()
	if err := n.start(zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	if err := <-dialed; err != nil {
		t.Error(err)
	}
}

// Whoever knows the id of a lock can release it.
func TestLogHasNoSubjects(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	l := &serverLog{logger: func() *zap.Logger { return zap.New(core) }, level: zapcore.InfoLevel, fatal: make(chan error, 1)}
	l.Warnf("Publish Violation - Subject %q", "$KV.locks.c2VjcmV0")
	l.Errorf("slow: lockgateway.locks.c2VjcmV0, $KV.locks.c2VjcmV0 [$KV.locks.c2VjcmV0]")
	l.Noticef("  Name:     %s", "node-1")
	l.Debugf("$KV.locks.c2VjcmV0")
	l.Tracef("$KV.locks.c2VjcmV0")
	l.Fatalf("gone: %s", "$KV.locks.c2VjcmV0")
	if err := <-l.fatal; err.Error() != "gone: $KV.…" {
		t.Errorf("what the server cannot go on with is %q", err)
	}
	var got []string
	for _, entry := range logs.All() {
		got = append(got, entry.Level.String()+" "+entry.ContextMap()["message"].(string))
	}
	want := []string{`warn Publish Violation - Subject "$KV.…"`, "warn slow: lockgateway.… $KV.… [$KV.…]", "info Name:     node-1", "error gone: $KV.…"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has %q; want %q", got, want)
	}
}
