package configsrc

import (
	"runtime"
	"syscall"
)

// decodeNice is added to the nice value of threads that decode files while answers are served; 19 is the kernel's most.
const decodeNice, mostNice = 10, 19

// yieldToAnswers lowers the priority of the calling goroutine's thread. The thread ends with the goroutine. Without it,
// the kernel gives a reload of many files as much of a busy machine as the answers: with 10,000 of 100,000 files
// switched by git under half of the load that two cores serve, the median latency was 1,024 ms instead of 239 ms, and
// the reload took longer, not shorter (bench checkout).
func yieldToAnswers() {
	runtime.LockOSThread()
	// 0 is the calling thread. The system call returns 20 - nice. Lowering the priority needs no privilege.
	if n, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, min(20-n+decodeNice, mostNice))
	}
}
