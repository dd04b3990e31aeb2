package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// A machine describes what the figures depend on most, and how quiet it was at the start.
type machine struct {
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`  // shown by the kernel
	Usable     int     `json:"usable"` // the part of them allowed by affinity and cgroup
	MemoryMiB  int     `json:"memoryMiB"`
	System     string  `json:"system"` // GOOS/GOARCH
	Kernel     string  `json:"kernel"`
	Go         string  `json:"go"`
	FileSystem string  `json:"fileSystem"` // of the work folder
	Load       float64 `json:"load"`       // load average over a minute, at the start
	Unsteady   float64 `json:"unsteady"`   // spread of equal pieces of work at the start, as a share of their median
}

// quietLoad is the load average up to which a machine counts as idle, steadyBound the largest spread of equal pieces of
// work.
const (
	quietLoad   = 0.3
	steadyBound = 0.1
)

// lookAtMachine takes the fingerprint. work is the folder whose disk is used.
func lookAtMachine(work string) machine {
	m := machine{
		CPU: "unknown CPU", Cores: runtime.NumCPU(), Usable: runtime.GOMAXPROCS(0), FileSystem: fileSystem(work),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Unsteady: unsteadiness(),
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	if load, err := proc.LoadAvg(); err == nil {
		m.Load = load.Load1
	}
	if name := cpuModel(proc); name != "" {
		m.CPU = name
	}
	if mem, err := proc.Meminfo(); err == nil && mem.MemTotalBytes != nil {
		m.MemoryMiB = int(*mem.MemTotalBytes >> 20)
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	return m
}

func (m machine) String() string {
	cores := fmt.Sprintf("%d cores", m.Cores)
	if m.Usable != m.Cores {
		cores = fmt.Sprintf("%d of %d cores", m.Usable, m.Cores)
	}
	return fmt.Sprintf("%s, %s, %.1f GiB, %s %s, %s, %s",
		m.CPU, cores, float64(m.MemoryMiB)/1024, m.System, m.Kernel, m.FileSystem, m.Go)
}

// sameAs reports whether figures of both machines may be compared. Kernel and Go may differ, because comparing them may
// be the purpose.
func (m machine) sameAs(o machine) bool {
	return m.CPU == o.CPU && m.Cores == o.Cores && m.Usable == o.Usable && m.System == o.System &&
		m.MemoryMiB>>9 == o.MemoryMiB>>9
}

// warnings lists the reasons why the figures of a machine in this state are imprecise.
func (m machine) warnings() (notes []string) {
	if m.Load > quietLoad {
		notes = append(notes, fmt.Sprintf("The machine was busy before this began (load %.2f, bound %.2f): "+
			"ratios are rough, and latencies mean little.", m.Load, quietLoad))
	}
	if m.Unsteady > steadyBound {
		notes = append(notes, fmt.Sprintf("The machine was unsteady before this began: equal pieces of work took times "+
			"that lie %.0f %% apart (bound: %.0f %%).", 100*m.Unsteady, 100*steadyBound))
	}
	return notes
}

// unsteadiness does the same piece of arithmetic 25 times, each long enough to be interrupted by other work on the
// processor. It returns the distance between the fastest and the third slowest, as a share of the median.
func unsteadiness() float64 {
	const pieces, steps = 25, 10_000_000
	var took latencies
	var x uint64 = 1
	for range pieces {
		began := time.Now()
		for range steps {
			x = x*6364136223846793005 + 1442695040888963407
		}
		took = append(took, time.Since(began))
	}
	runtime.KeepAlive(x) // keeps the compiler from removing the arithmetic
	p := took.percentiles(0, 0.5, 1-2.0/pieces)
	return float64(p[2]-p[0]) / float64(p[1])
}
