package process_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockgateway/lockgateway/integration/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell starts a shell script.
func shell(t *testing.T, script string) *process.Process {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	return process.Start(t, process.Command{
		Name: "shell", Path: path, Args: []string{"-c", script}, Dir: t.TempDir(), Env: os.Environ(),
	})
}

func TestProcessFreezesAndThaws(t *testing.T) {
	p := shell(t, "while :; do echo x; done")
	process.Await(t, "it writes", func() bool { return p.Output(t) != "" })
	p.Pause(t)
	before := len(p.Output(t))
	for range 100 {
		if now := len(p.Output(t)); now != before {
			t.Fatalf("a frozen process wrote %d bytes", now-before)
		}
	}
	p.Resume(t)
	process.Await(t, "it writes again", func() bool { return len(p.Output(t)) > before })
}

func TestKillEndsAFrozenProcess(t *testing.T) {
	p := shell(t, "while :; do :; done")
	p.Pause(t)
	p.Kill(t)
	if !p.HasExited() {
		t.Error("it has not ended")
	}
	p.Kill(t) // a second time does nothing
}

func TestTerminateLetsTheProcessFinish(t *testing.T) {
	p := shell(t, "trap 'echo bye; exit 0' TERM; echo ready; while :; do :; done")
	process.Await(t, "it is ready", func() bool { return strings.Contains(p.Output(t), "ready") })
	p.Terminate(t)
	if !strings.Contains(p.Output(t), "bye") {
		t.Errorf("the output is %q", p.Output(t))
	}
}
