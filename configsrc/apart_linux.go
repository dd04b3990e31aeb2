package configsrc

import (
	"os/exec"
	"syscall"
)

// startLow starts a process with the lowest priority. Priorities belong to threads here, so it gets a group of its own,
// which has them all.
func startLow(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, 19) // without it, it is only less polite
	return nil
}
