//go:build !linux

package configsrc

import "os/exec"

// startLow starts a process.
func startLow(cmd *exec.Cmd) error { return cmd.Start() }
