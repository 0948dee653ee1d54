// Package process runs the servers that tests use as child processes, and does
// to them what happens to servers: they are killed, they freeze and thaw. What
// a process wrote is shown if its test fails.
package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Soon bounds everything that takes well below a second, or a few seconds at
// most, where nothing hangs. It tells a hang from a slow minute, and says
// nothing about speed.
const Soon = 3 * time.Minute

// Command says what to run.
type Command struct {
	Name string // for messages
	Path string
	Args []string
	Dir  string // where it runs and its output is kept
	Env  []string
}

// Process is a running server.
type Process struct {
	name   string
	cmd    *exec.Cmd
	output string        // the file that has its stdout and stderr
	exited chan struct{} // closed once err is set
	err    error
}

// Start starts a process. It is gone at the test's end.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	output, err := os.CreateTemp(c.Dir, "output-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }() // the process has its own
	// Its end is the test's matter, not that of a context.
	cmd := exec.Command(c.Path, c.Args...) //nolint:noctx // See above.
	cmd.Dir, cmd.Env = c.Dir, c.Env
	cmd.Stdout, cmd.Stderr = output, output
	dieWithTest(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{name: c.Name, cmd: cmd, output: output.Name(), exited: make(chan struct{})}
	go func() { // ends with the process, which the cleanup below sees to
		p.err = cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.exited
		p.report(t)
	})
	return p
}

// report shows the end of the output if the test failed, and fails it if the
// process panicked or raced.
func (p *Process) report(t testing.TB) {
	out := p.Output(t)
	for _, bad := range []string{"DATA RACE", "panic: ", "panic serving", "fatal error: "} {
		if strings.Contains(out, bad) {
			t.Errorf("%s: the output has a %q", p.name, bad)
		}
	}
	if !t.Failed() {
		return
	}
	const enough = 24 << 10
	if len(out) > enough {
		out = "[...]" + out[len(out)-enough:]
	}
	t.Logf("%s (%s):\n%s", p.name, filepath.Base(p.output), out)
}

// Signal sends a signal, or does nothing if the process has ended.
func (p *Process) Signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !p.HasExited() {
		t.Fatalf("%s: %v", p.name, err)
	}
}

// Kill ends the process as a power switch does, and returns when it is gone.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	<-p.exited
}

// Pause freezes the process; it returns when that has happened.
func (p *Process) Pause(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGSTOP)
	Await(t, p.name+" stands still", func() bool { return stopped(p.cmd.Process.Pid) || p.HasExited() })
}

// Resume thaws the process.
func (p *Process) Resume(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGCONT)
}

// Terminate asks the process to end, and waits for it. It must end cleanly.
func (p *Process) Terminate(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(Soon):
		t.Fatalf("%s still runs after %v", p.name, Soon)
	}
	if p.err != nil {
		t.Fatalf("%s ended with %v", p.name, p.err)
	}
}

// HasExited reports whether the process has ended.
func (p *Process) HasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Output returns what the process wrote until now.
func (p *Process) Output(t testing.TB) string {
	t.Helper()
	out, err := os.ReadFile(p.output)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Await waits until something is so, which must be soon.
func Await(t testing.TB, what string, so func() bool) {
	t.Helper()
	deadline := time.After(Soon)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", Soon, what)
		}
	}
}
