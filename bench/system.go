package main

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// endWithBench makes the kernel end a server if bench is killed and cannot do it.
func endWithBench(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}

// cpuModel returns the name of the processor, "" if the kernel does not say it.
func cpuModel(proc procfs.FS) string {
	cpus, err := proc.CPUInfo()
	if err != nil || len(cpus) == 0 {
		return ""
	}
	return cpus[0].ModelName
}

// cpuClock returns the CPU time of a process so far, without its children, in nanoseconds. The number of the clock is
// that of clock_getcpuclockid(3).
func cpuClock(pid int) (time.Duration, error) {
	const scheduled = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &ts); err != nil {
		return 0, fmt.Errorf("read the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// fileSystems names the usual file systems by their number in statfs.
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.TMPFS_MAGIC: fsTmpfs,
}

// fileSystem returns the type of the file system that holds a folder.
func fileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "unknown"
	}
	if name, ok := fileSystems[int64(st.Type)]; ok {
		return name
	}
	return fmt.Sprintf("%#x (statfs f_type)", st.Type)
}
