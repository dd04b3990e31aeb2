package main

import (
	"os/exec"
	"syscall"
)

// endWithBench makes the kernel end a server if bench is killed and cannot do it.
func endWithBench(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
