package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// inspect runs caddy lock-gateway against the server.
func (s *server) inspect(args ...string) (output string, err error) {
	s.t.Helper()
	return runCaddy(s.t, s.dir, append([]string{"lock-gateway", "--address", s.admin}, args...)...)
}

// inspects checks that the command succeeds, and that its output has all of these.
func (s *server) inspects(args []string, want ...string) {
	s.t.Helper()
	out, err := s.inspect(args...)
	if err != nil {
		s.t.Fatalf("caddy lock-gateway %v: %v\n%s", args, err, out)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			s.t.Errorf("caddy lock-gateway %v lacks %q:\n%s", args, w, out)
		}
	}
}

func TestCommandShowsAndFreesLocks(t *testing.T) {
	t.Parallel()
	s := startServer(t, onlySite, nil)
	s.take("2/stuck-secret", "")
	s.take("2/stuck-secret", "holder=worker%0A3")
	waiter := s.queue("2/stuck-secret", "")
	s.awaitWaiting("2/stuck-secret", 1)
	out, err := s.inspect("ls", "--state", "waiting", "--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var list struct{ Locks []struct{ Held, Waiting int } }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Locks) != 1 || list.Locks[0].Held != 2 || list.Locks[0].Waiting != 1 {
		t.Errorf("the list is %s: %v", out, err)
	}
	s.inspects([]string{"ls", "--sort", "queue"}, "LOCK", "2/stuck-secret  2", "  1  ")
	s.inspects([]string{"show", "2/stuck-secret"}, "(1 without a name)", `"worker\n3"`, "QUEUE", "1. without a name")
	s.inspects([]string{"release", "2/stuck-secret", "--holder", "worker\n3"}, "released")
	waiter.expectGrant(t)
	if out, err := s.inspect("release", "2/stuck-secret", "--holder", "nobody"); err == nil || !strings.Contains(out, "that holder has no slot") {
		t.Errorf("the release of nobody's slot gave %v\n%s", err, out)
	}
	if out, err := s.inspect("release", "2/stuck-secret", "--holder", "nobody", "--json"); err == nil || !strings.Contains(out, `"released":false`) {
		t.Errorf("with --json the release of nobody's slot gave %v\n%s", err, out)
	}
	if out, err := s.inspect("nonsense"); err == nil || !strings.Contains(out, `unknown command "nonsense"`) {
		t.Errorf("what is no command gave %v\n%s", err, out)
	}
	s.inspects(nil, "Usage:", "release")
	s.inspects([]string{"reset", "2/stuck-secret"}, "reset")
	s.inspects([]string{"ls"}, "LOCK")
	s.inspects([]string{"gateways"}, "alone")
	s.inspects([]string{"backends"}, "memory-", "default", "yes")
	if out, err := s.inspect("show", "stuck-secret"); err == nil || !strings.Contains(out, "not written as maxValue/lockId") {
		t.Errorf("a lock without a maximum gave %v\n%s", err, out)
	}
	// The config tells the address, too.
	if out, err := runCaddy(t, s.dir, "lock-gateway", "ls", "--config", filepath.Join(s.dir, "Caddyfile")); err != nil || !strings.Contains(out, "LOCK") {
		t.Errorf("with the config: %v\n%s", err, out)
	}
	// Caddy logs each request to its admin API.
	if log := s.process.output(t); !strings.Contains(log, "/lock_gateway/release") || strings.Contains(log, "secret") {
		t.Errorf("the log lacks requests, or has the lock's id:\n%s", log)
	}
}

func TestWatchEndsWithAnInterrupt(t *testing.T) {
	t.Parallel()
	s := startServer(t, onlySite, nil)
	out, err := os.Create(filepath.Join(s.dir, "watched"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(binary, "lock-gateway", "--address", s.admin, "ls", "--watch", "--interval", "10ms")
	cmd.Env, cmd.Stdout, cmd.Stderr = childEnv(s.dir), out, out
	dieWithTest(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	shown := func() string {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	await(t, "the list is shown again", func() bool { return strings.Count(shown(), "LOCK") > 2 })
	s.take("1/new", "")
	await(t, "the new lock is shown", func() bool { return strings.Contains(shown(), "1/new") })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the command ended with %v", err)
	}
	if text := shown(); strings.Contains(text, "\x1b") || !strings.HasSuffix(text, "\n") {
		t.Errorf("a file got the terminal's commands, or half a list: %q", text)
	}
}
