package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// The memory backend promises no more than the process's life.
func TestB27RestartForgetsEverything(t *testing.T) {
	s := startServer(t, onlySite, nil)
	s.take("1/a", "")
	before := s.take("3/named", "holder=keeper")
	s.expect("/v1/1/a/value", `{"value":1}`)

	s.signal(syscall.SIGKILL)
	<-s.process.exited
	s.start(onlySite)

	s.expect("/v1/1/a/value", `{}`)
	s.expect("/v1/3/named/value?detail=1", `{"waiting":0}`)
	s.expect("/v1/1/a/release", `{"released":false}`)
	s.take("1/a", "")
	if after := s.take("3/named", "holder=keeper"); after.Token <= before.Token {
		t.Errorf("token %d after the restart, %d before", after.Token, before.Token)
	}
}

func TestB34KilledClientLeavesNothing(t *testing.T) {
	const config = `{
	admin ADMIN
	default_bind 127.0.0.1
	servers {
		protocols h1 h2c
	}
}
http://SITE {
	lock_gateway
}
`
	curl := findCurl(t)
	for _, test := range []struct {
		name, protocol string
	}{
		{"HTTP/1.1", "--http1.1"},
		{"HTTP/2", "--http2-prior-knowledge"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t, config, nil)
			s.take("1/a", "")
			args := []string{"--no-progress-meter", "--parallel", "--parallel-immediate", test.protocol}
			const count = 6
			for i := range count {
				url := fmt.Sprintf("http://%s/v1/1/a/acquire?%s", s.site, forLong)
				if i%2 == 1 {
					url += fmt.Sprintf("&holder=job-%d", i)
				}
				args = append(args, url)
			}
			cmd := exec.CommandContext(t.Context(), curl, args...)
			var output bytes.Buffer
			cmd.Stdout, cmd.Stderr = &output, &output
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Wait() }) // the second time it does nothing
			s.awaitWaiting("1/a", count)

			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			s.awaitWaiting("1/a", 0)
			s.expect("/v1/1/a/value", `{"value":1}`)
			s.expect("/v1/1/a/release", `{"released":true}`)
			s.expect("/v1/1/a/value", `{"value":0}`)
			if output.Len() > 0 {
				t.Errorf("curl says: %s", output.String())
			}
		})
	}
}

func findCurl(t *testing.T) string {
	t.Helper()
	curl, err := exec.LookPath("curl")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs curl:", err)
	}
	return curl
}
