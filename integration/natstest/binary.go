// Package natstest runs real NATS servers with JetStream, one or a cluster, as
// processes on the loopback interface, with their data on disk.
package natstest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const serverPackage = "github.com/nats-io/nats-server/v2"

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

// buildVersion returns the path of another version, which is gone at the test's end;
// or of that which go.mod pins, if none is given.
func buildVersion(t testing.TB, version string) string {
	t.Helper()
	if version == "" {
		return Build(t)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", serverPackage+"@"+version)
	cmd.Env = append(os.Environ(), "GOBIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building nats-server %s: %v\n%s", version, err, out)
	}
	return filepath.Join(dir, "nats-server")
}

var build = sync.OnceValues(func() (string, error) {
	// -n does all but run the tool.
	cmd := exec.CommandContext(context.Background(), "go", "tool", "-n", serverPackage)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = errors.Join(err, errors.New(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
})
