// Package gatewaytest runs lock gateways as the processes that users run, and
// talks HTTP with them.
package gatewaytest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

const module = "github.com/lockgateway/lockgateway"

// Main is what TestMain of a package does whose tests start gateways. It
// removes what Build built, and fails if goroutines are left.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(buildDir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}))
}

// Build compiles cmd/caddy of the checkout, once, with the race detector if the
// tests have it, and returns the path of the binary. It takes the dependencies
// that the checkout's users get, whatever this module asks for.
func Build(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal("building caddy:", err)
	}
	return path
}

var (
	buildDir string // what Main removes

	build = sync.OnceValues(func() (path string, err error) {
		ctx := context.Background()
		dir, err := run(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module))
		if err != nil {
			return "", err
		}
		if buildDir, err = os.MkdirTemp("", "lockgateway-test-"); err != nil {
			return "", err
		}
		path = filepath.Join(buildDir, "caddy")
		args := []string{"build", "-o", path}
		if underRace() {
			args = append(args, "-race")
		}
		cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/caddy")...)
		cmd.Dir = dir
		_, err = run(cmd)
		return path, err
	})
)

func run(cmd *exec.Cmd) (output string, err error) {
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
