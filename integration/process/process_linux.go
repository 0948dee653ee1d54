package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// dieWithTest sees to it that a process does not outlive a test binary that
// panics, as it does at its time-out.
func dieWithTest(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether all threads of a process stand still.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		// The state follows the name, which is in parentheses and may have some.
		if i := bytes.LastIndexByte(stat, ')'); i < 0 || !bytes.HasPrefix(stat[i:], []byte(") T")) {
			return false
		}
	}
	return true
}
