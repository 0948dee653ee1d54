// Package natstest runs real NATS servers with JetStream, one or a cluster, as
// processes on the loopback interface, with their data on disk.
package natstest

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Build returns the path of the NATS server that the module's go.mod pins. The
// first call may compile it, which takes a minute; Go's build cache keeps it.
func Build(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal("building nats-server:", err)
	}
	return path
}

var build = sync.OnceValues(func() (string, error) {
	// -n does all but run the tool.
	cmd := exec.CommandContext(context.Background(), "go", "tool", "-n", "github.com/nats-io/nats-server/v2")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = errors.Join(err, errors.New(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
})
