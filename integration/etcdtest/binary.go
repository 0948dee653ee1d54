// Package etcdtest runs real etcd servers, one or a cluster, as processes on
// the loopback interface, with their data on disk.
package etcdtest

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Build returns the path of the etcd server that the module's go.mod pins. The
// first call may compile it, which takes a minute; Go's build cache keeps it.
func Build(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal("building etcd:", err)
	}
	return path
}

var build = sync.OnceValues(func() (string, error) {
	// -n does all but run the tool.
	cmd := exec.CommandContext(context.Background(), "go", "tool", "-n", "go.etcd.io/etcd/server/v3")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = errors.Join(err, errors.New(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
})
