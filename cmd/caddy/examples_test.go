package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// example returns a command of the examples folder that runs against s. What an
// example is written in must be there in CI; elsewhere its test is left out.
func (s *server) example(name string, args ...string) *exec.Cmd {
	s.t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") != "" {
			s.t.Fatal(err)
		}
		s.t.Skip(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Join(root, "examples")
	cmd.Env = append(os.Environ(), "LOCKS=http://"+s.site, "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// run runs an example that must succeed.
func (s *server) run(cmd *exec.Cmd) {
	s.t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Errorf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// underLock are the examples that run a command under the lock "example".
func underLock(t *testing.T) map[string]func(s *server, command string) *exec.Cmd {
	t.Helper()
	lockGo := filepath.Join(t.TempDir(), "lock")
	if out, err := exec.Command("go", "build", "-o", lockGo, root+"/examples/golang").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return map[string]func(*server, string) *exec.Cmd{
		"lock.sh":   func(s *server, c string) *exec.Cmd { return s.example("bash", "lock.sh", "example", "bash", "-c", c) },
		"simple.sh": func(s *server, c string) *exec.Cmd { return s.example("bash", "simple.sh", "example", "bash", "-c", c) },
		"cron.sh":   func(s *server, c string) *exec.Cmd { return s.example("bash", "cron.sh", "example", "bash", "-c", c) },
		"lock.go":   func(s *server, c string) *exec.Cmd { return s.example(lockGo, "example", "bash", "-c", c) },
		"lock.go without a holder": func(s *server, c string) *exec.Cmd {
			return s.example(lockGo, "-anonymous", "example", "bash", "-c", c)
		},
		"lock.py without a holder": func(s *server, c string) *exec.Cmd {
			return s.example("python3", "-c", "import subprocess, sys\nfrom lock import anonymous_lock\nwith anonymous_lock('example'):\n subprocess.run(['bash', '-c', sys.argv[1]], check=True)", c)
		},
		"lock.mjs without a holder": func(s *server, c string) *exec.Cmd {
			return s.example("node", "--input-type=module", "-e",
				`import { withAnonymousLock } from "./lock.mjs"; import { execFileSync } from "node:child_process";
				await withAnonymousLock("example", async () => { execFileSync("bash", ["-c", process.argv[1]]) })`, c)
		},
		"lock.py": func(s *server, c string) *exec.Cmd {
			return s.example("python3", "-c", "import subprocess, sys\nfrom lock import lock\nwith lock('example') as token:\n assert token\n subprocess.run(['bash', '-c', sys.argv[1]], check=True)", c)
		},
		"lock.mjs": func(s *server, c string) *exec.Cmd {
			return s.example("node", "--input-type=module", "-e",
				`import { withLock } from "./lock.mjs"; import { execFileSync } from "node:child_process";
				await withLock("example", async (token) => { if (!token) throw token; execFileSync("bash", ["-c", process.argv[1]]) })`, c)
		},
	}
}

func TestExamplesHoldTheLockAndAlwaysReleaseIt(t *testing.T) {
	s := startServer(t, onlySite, nil)
	for name, example := range underLock(t) {
		t.Run(name, func(t *testing.T) {
			s := s.within(t)
			value := "curl -sf http://" + s.site + "/v1/1/example/value"
			s.run(example(s, "[ $("+value+") = '{\"value\":1}' ]"))
			s.expect("/v1/1/example/value", `{"value":0}`)
			if err := example(s, "exit 3").Run(); err == nil {
				t.Error("the failure of the command is not the example's")
			}
			s.expect("/v1/1/example/value", `{"value":0}`)
		})
	}
}

func TestExamplesExcludeEachOther(t *testing.T) {
	s := startServer(t, onlySite, nil)
	dir := t.TempDir()
	counter := filepath.Join(dir, "counter")
	if err := os.WriteFile(counter, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Adds one in a way that loses some if two do it at a time.
	add := fmt.Sprintf("n=$(cat %[1]s); sleep 0.05; echo $((n+1)) > %[1]s", counter)
	var running []*exec.Cmd
	for name, example := range underLock(t) {
		if name == "cron.sh" {
			continue // it does not wait
		}
		for range 3 {
			cmd := example(s, add)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			running = append(running, cmd)
		}
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", cmd.Args, err)
		}
	}
	got, err := os.ReadFile(counter)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint(len(running)); strings.TrimSpace(string(got)) != want {
		t.Errorf("the counter is %s; want %s", got, want)
	}
}

// Told to stop, the example stops its command, and only then releases.
func TestLockExampleOutlivesItsCommand(t *testing.T) {
	s := startServer(t, onlySite, nil)
	ended := filepath.Join(t.TempDir(), "ended")
	begun := ended + "-not"
	value := "curl -sf http://" + s.site + "/v1/1/example/value"
	cmd := s.example("bash", "lock.sh", "example", "bash", "-c",
		fmt.Sprintf("trap '%s >%s; exit 7' TERM; touch %s; while :; do sleep 0.01; done", value, ended, begun))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the command runs", func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("the example ended with %v; want the command's 7", err)
	}
	if got, err := os.ReadFile(ended); string(got) != `{"value":1}` {
		t.Errorf("when the command ended, the lock was %s, error %v", got, err)
	}
	s.expect("/v1/1/example/value", `{"value":0}`)
}

func TestRenewExample(t *testing.T) {
	s := startServer(t, onlySite, nil)
	s.run(s.example("python3", "renew.py", "bash", "-c", "curl -sf http://"+s.site+"/v1/1/renewed/value | grep -q '\"value\":1'"))
	s.expect("/v1/1/renewed/value", `{"value":0}`)
}

func TestCronExampleDoesNothingWhenAnotherDoesIt(t *testing.T) {
	s := startServer(t, onlySite, nil)
	s.expect("/v1/1/report/acquire", `{"acquired":true,"value":1}`)
	s.run(s.example("bash", "cron.sh", "report", "bash", "-c", "exit 3"))
	s.expect("/v1/1/report/value", `{"value":1}`)
}

func TestPoolExampleRunsThreeAtATime(t *testing.T) {
	s := startServer(t, onlySite, nil)
	dir := t.TempDir()
	job := fmt.Sprintf("touch %[1]s/$$; ls %[1]s | wc -l >> %[1]s-seen; sleep 0.1; rm %[1]s/$$", dir)
	args := []string{"pool.py"}
	for range 10 {
		args = append(args, job)
	}
	s.run(s.example("python3", args...))
	seen, err := os.ReadFile(dir + "-seen")
	if err != nil {
		t.Fatal(err)
	}
	counts := strings.Fields(string(seen))
	for _, n := range counts {
		if n > "3" {
			t.Errorf("%s jobs ran at a time", n)
		}
	}
	if len(counts) != 10 {
		t.Errorf("%d jobs ran; want 10", len(counts))
	}
	s.expect("/v1/3/workers/value", `{"value":0}`)
}
