package main_test

import (
	"os/exec"
	"syscall"
)

func init() {
	dieWithTest = func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
}
