package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// members are the servers of a store, as child processes on the loopback
// interface.
type members []*server

// cpuTime is that of all servers.
func (m members) cpuTime() (sum time.Duration) {
	for _, s := range m {
		sum += s.cpuTime()
	}
	return sum
}

func (m members) stop() (err error) {
	for _, s := range m {
		err = errors.Join(err, s.stop())
	}
	return err
}

// toolBinary returns the path of a server that go.mod pins. The first call
// compiles it, which takes a minute; Go's build cache keeps it.
func toolBinary(ctx context.Context, pkg string) (string, error) {
	// -n does all but run it.
	out, err := exec.CommandContext(ctx, "go", "tool", "-n", pkg).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("building %s (run this in bench/): %w", pkg, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// checkDisk refuses a folder in memory, where writes cost next to nothing.
func checkDisk(dir string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("looking at %s: %w", dir, err)
	}
	if s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC {
		return fmt.Errorf("%s is not on a disk; set TMPDIR to a folder that is", os.TempDir())
	}
	return nil
}

// freeAddresses returns n addresses that nobody listens on.
func freeAddresses(n int) (addresses []string, err error) {
	for range n {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}
