package main_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// soon bounds everything that takes well below a second where nothing hangs.
// It tells a hang from a slow minute, and says nothing about speed.
const soon = 3 * time.Minute

// binary is the path of the Caddy under test, built by TestMain.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lockgateway-test-")
	if err == nil {
		binary = filepath.Join(dir, "caddy")
		err = build(binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}))
}

// build compiles the package, with the race detector if the tests have it.
func build(output string) error {
	args := []string{"build", "-o", output}
	if underRace() {
		args = append(args, "-race")
	}
	out, err := exec.CommandContext(context.Background(), "go", append(args, ".")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building caddy: %w\n%s", err, out)
	}
	return nil
}

func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// onlySite is the shortest config: one site that serves locks.
const onlySite = `{
	admin ADMIN
	default_bind 127.0.0.1
}
http://SITE {
	lock_gateway
}
`

// server is a Caddy process with a home of its own. Its methods are for the
// test's goroutine, unless they say otherwise.
type server struct {
	t   *testing.T
	dir string

	admin, site, other string // addresses, in configs ADMIN, SITE and OTHER
	more               map[string]string
	env                []string // besides childEnv

	process  *process
	client   *http.Client
	reloaded bool // see fetchThroughReload
}

// startServer starts Caddy with a config, a Caddyfile in which ADMIN, SITE and
// OTHER stand for addresses that are free, and DIR for a directory. The pairs
// in more are replaced as well. It returns when the site answers; the process
// is gone at the test's end.
func startServer(t *testing.T, config string, more map[string]string) *server {
	t.Helper()
	return startServerIn(t, nil, config, more)
}

// startServerIn is startServer with variables in the environment.
func startServerIn(t *testing.T, env []string, config string, more map[string]string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), more: more, env: env}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	s.start(config)
	return s
}

// within is the same server for a subtest.
func (s *server) within(t *testing.T) *server {
	inner := *s
	inner.t = t
	return &inner
}

// start starts the process; it may be called again after the process ended.
func (s *server) start(config string) {
	s.t.Helper()
	// Between finding a free port and taking it, somebody else may take it.
	const attempts = 5
	for range attempts {
		s.admin, s.site, s.other = testaddr.Free(s.t), testaddr.Free(s.t), testaddr.Free(s.t)
		s.process = s.launch("run", "--config", s.writeConfig("Caddyfile", config))
		if s.awaitStart() {
			return
		}
		if !strings.Contains(s.process.output(s.t), "address already in use") {
			break
		}
	}
	s.t.Fatalf("caddy does not start:\n%s", s.process.output(s.t))
}

// awaitStart reports whether the site answers; if not, the process ended.
func (s *server) awaitStart() bool {
	s.t.Helper()
	up := false
	await(s.t, "caddy answers or ends", func() bool {
		conn, err := net.Dial("tcp", s.site)
		if err == nil {
			up = true
			_ = conn.Close()
		}
		return up || s.process.hasExited()
	})
	return up
}

// writeConfig writes a config with its addresses filled in, and returns its path.
func (s *server) writeConfig(name, config string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(s.fill(config)), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *server) fill(config string) string {
	pairs := []string{"ADMIN", s.admin, "SITE", s.site, "OTHER", s.other, "DIR", s.dir}
	for name, value := range s.more {
		pairs = append(pairs, name, value)
	}
	return strings.NewReplacer(pairs...).Replace(config)
}

// reload loads a config into the running process, as an operator does.
func (s *server) reload(config string) (output string, err error) {
	s.t.Helper()
	return s.load(s.writeConfig("Caddyfile", config))
}

// load is reload for a file that is written already.
func (s *server) load(path string) (output string, err error) {
	s.t.Helper()
	s.reloaded = true
	return runCaddy(s.t, s.dir, "reload", "--address", s.admin, "--config", path)
}

func (s *server) mustReload(config string) {
	s.t.Helper()
	if out, err := s.reload(config); err != nil {
		s.t.Fatalf("caddy reload: %v\n%s", err, out)
	}
}

// stop runs caddy stop, which comes back when the process has answered all.
func (s *server) stop() {
	s.t.Helper()
	if out, err := runCaddy(s.t, s.dir, "stop", "--address", s.admin); err != nil {
		s.t.Fatalf("caddy stop: %v\n%s", err, out)
	}
}

func (s *server) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.process.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// expectExit waits for the process's end, which must be a clean one.
func (s *server) expectExit() {
	s.t.Helper()
	select {
	case <-s.process.exited:
	case <-time.After(soon):
		s.t.Fatalf("caddy still runs after %v:\n%s", soon, s.process.output(s.t))
	}
	if s.process.err != nil {
		s.t.Fatalf("caddy ended with %v:\n%s", s.process.err, s.process.output(s.t))
	}
}

// process is a running Caddy.
type process struct {
	cmd    *exec.Cmd
	log    string        // the file that has its stdout and stderr
	exited chan struct{} // closed once err is set
	err    error
}

func (s *server) launch(args ...string) *process {
	s.t.Helper()
	log, err := os.CreateTemp(s.dir, "output-")
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	// Its end is the test's matter, not that of a context.
	cmd := exec.Command(binary, args...)
	cmd.Env = append(childEnv(s.dir), s.env...)
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = log, log
	dieWithTest(cmd)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p := &process{cmd: cmd, log: log.Name(), exited: make(chan struct{})}
	go func() { // ends with the process, which the cleanup below sees to
		p.err = cmd.Wait()
		close(p.exited)
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.exited
		out := p.output(s.t)
		for _, bad := range []string{"DATA RACE", "panic: ", "panic serving", "fatal error: "} {
			if strings.Contains(out, bad) {
				s.t.Errorf("caddy's output has a %q:\n%s", bad, out)
			}
		}
	})
	return p
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *process) output(t *testing.T) string {
	t.Helper()
	out, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// dieWithTest sees to it that a process does not outlive a test binary that
// panics, as it does at its time-out. Not every system can do that.
var dieWithTest = func(*exec.Cmd) {}

// runCaddy runs a command of the binary to its end.
func runCaddy(t *testing.T, dir string, args ...string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = childEnv(dir)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}

// childEnv lets nothing of the developer's own Caddy in, nor anything out.
func childEnv(home string) []string {
	return []string{
		"HOME=" + home,
		"XDG_DATA_HOME=" + filepath.Join(home, "data"),
		"XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		"PATH=" + os.Getenv("PATH"),
		// What snippets of the documentation use.
		"LOCKS=" + os.Getenv("LOCKS"),
		"LOCKS_HASH_KEY=" + os.Getenv("LOCKS_HASH_KEY"),
	}
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(soon)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", soon, what)
		}
	}
}

// needFiles skips the test where a process cannot have so many files open.
func needFiles(t *testing.T, n uint64) {
	t.Helper()
	// Go programs, this one and Caddy, raise the soft limit to the hard one.
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Max < n {
		t.Skipf("a process may have %d open files only; the test needs %d", limit.Max, n)
	}
}
