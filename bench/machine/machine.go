// Package machine takes the fingerprint of the machine on which figures are measured: processor, memory, kernel, file
// system of the work folder, and how busy it was at the start. Figures of two machines are compared only if
// [Machine.SameAs] says so.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// A Machine describes what the figures depend on most, and how quiet it was at the start.
type Machine struct {
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`  // shown by the kernel
	Usable     int     `json:"usable"` // the part of them allowed by affinity and cgroup
	MemoryMiB  int     `json:"memoryMiB"`
	System     string  `json:"system"` // GOOS/GOARCH
	Kernel     string  `json:"kernel"`
	Go         string  `json:"go"`
	FileSystem string  `json:"fileSystem"` // of the work folder
	Load       float64 `json:"load"`       // load average over a minute, at the start
}

// quietLoad is the load average up to which a machine counts as idle.
const quietLoad = 0.3

// Look takes the fingerprint. work is the folder whose disk is used.
func Look(work string) Machine {
	m := Machine{
		CPU: "unknown CPU", Cores: runtime.NumCPU(), Usable: runtime.GOMAXPROCS(0), FileSystem: FileSystem(work),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	if load, err := proc.LoadAvg(); err == nil {
		m.Load = load.Load1
	}
	if cpus, err := proc.CPUInfo(); err == nil && len(cpus) > 0 && cpus[0].ModelName != "" {
		m.CPU = cpus[0].ModelName
	}
	if mem, err := proc.Meminfo(); err == nil && mem.MemTotalBytes != nil {
		m.MemoryMiB = int(*mem.MemTotalBytes >> 20)
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	return m
}

func (m Machine) String() string {
	cores := fmt.Sprintf("%d cores", m.Cores)
	if m.Usable != m.Cores {
		cores = fmt.Sprintf("%d of %d cores", m.Usable, m.Cores)
	}
	return fmt.Sprintf("%s, %s, %.1f GiB, %s %s, %s, %s",
		m.CPU, cores, float64(m.MemoryMiB)/1024, m.System, m.Kernel, m.FileSystem, m.Go)
}

// SameAs reports whether figures of both machines may be compared. Kernel and Go may differ, because comparing them may
// be the purpose.
func (m Machine) SameAs(o Machine) bool {
	return m.CPU == o.CPU && m.Cores == o.Cores && m.Usable == o.Usable && m.System == o.System &&
		m.MemoryMiB>>9 == o.MemoryMiB>>9
}

// Warnings lists the reasons why the figures of a machine in this state are imprecise.
func (m Machine) Warnings() (notes []string) {
	if m.Load > quietLoad {
		notes = append(notes, fmt.Sprintf("The machine was busy before this began (load %.2f, bound %.2f): "+
			"ratios are rough, and latencies mean little.", m.Load, quietLoad))
	}
	return notes
}

// FsTmpfs is a file system in memory, on which a sync costs nothing.
const FsTmpfs = "tmpfs"

// fileSystems names the usual file systems by their number in statfs.
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.TMPFS_MAGIC: FsTmpfs,
}

// FileSystem returns the type of the file system that holds a folder.
func FileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "unknown"
	}
	if name, ok := fileSystems[int64(st.Type)]; ok {
		return name
	}
	return fmt.Sprintf("%#x (statfs f_type)", st.Type)
}
