package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"fingerpost/bench/mailsink"
	"fingerpost/bench/wire"
)

// A server is a process under measurement: fingerpost or a baseline.
type server struct {
	name  string
	addr  string // "127.0.0.1:port"
	ops   string // the address of the ops listener; only fingerpost has one
	pid   int
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	ready time.Duration // from the start of the process to readiness
}

const (
	startTimeout = 10 * time.Minute // cold starts of large corpora take long
	stopTimeout  = 30 * time.Second
)

// start runs a program and waits until ready returns nil. The output of the program goes to a log in the work folder.
// The server is stopped at the end of the command at the latest.
func (b *bench) start(ctx context.Context, s *server, cmd *exec.Cmd, ready func() error) error {
	logPath := filepath.Join(b.work, strings.NewReplacer(" ", "-", "/", "-").Replace(s.name)+".log")
	logFile, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	defer logFile.Close()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // it ends if bench is killed
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	s.cmd, s.pid, s.ended = cmd, cmd.Process.Pid, make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // the log has its last output; a stopped server may end with any status
		close(s.ended)
	}()
	b.atEnd(func() error { s.stop(); return nil })
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for err := ready(); err != nil; err = ready() {
		select {
		case <-s.ended:
			return fmt.Errorf("start %s: it ended before it was ready: %v (its log is %s)", s.name, cmd.ProcessState, logPath)
		case <-ctx.Done():
			s.stop()
			return fmt.Errorf("start %s: it does not become ready: %w (its log is %s)", s.name, err, logPath)
		case <-time.After(5 * time.Millisecond):
		}
	}
	s.ready = time.Since(began)
	return nil
}

// stop ends the process, by force if needed. It may be called twice.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails only if the process has ended already
	select {
	case <-s.ended:
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// freeAddress returns an address with a port that is free now.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// isReady returns an error unless an ops listener says that its server is ready.
func isReady(ops string) error {
	c := wire.NewClient(ops)
	defer c.Close()
	_, err := c.Must("GET", "/readyz", nil)
	return err
}

// buildBinary builds fingerpost from this checkout into the work folder, unless a ready one was named.
func (b *bench) buildBinary(ctx context.Context) error {
	if b.binary != "" {
		return nil
	}
	path, err := filepath.Abs(filepath.Join(b.work, "fingerpost"))
	if err != nil {
		return err
	}
	b.say("building %s", path)
	// In the folder of the main module, whose go.mod decides the versions of the libraries.
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/fingerpost")
	build.Dir = filepath.Dir(benchFolder())
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build fingerpost: %w\n%s", err, out)
	}
	b.binary = path // one build per run is enough
	return nil
}

// fingerpost starts the program on a config folder. name distinguishes the stores and logs of several servers.
func (b *bench) fingerpost(ctx context.Context, name, config string, flags ...string) (*server, error) {
	return b.node(ctx, name, config, append([]string{"--config", config}, flags...)...)
}

// node starts the program with flags that say where its files come from. what is for the person at the terminal.
func (b *bench) node(ctx context.Context, name, what string, flags ...string) (*server, error) {
	if err := b.buildBinary(ctx); err != nil {
		return nil, err
	}
	addr, err1 := freeAddress()
	ops, err2 := freeAddress()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--data", b.dataDir(name), "--listen", addr, "--ops-listen", ops,
		"--log-format", "json"}, flags...)
	b.say("starting fingerpost on %s", what)
	s := &server{name: name, addr: addr, ops: ops}
	cmd := exec.Command(b.binary, args...)
	if cpu := b.speed.serverCPU; cpu != "" { // taskset becomes the server, so the process id is the same
		cmd = exec.Command("taskset", append([]string{"-c", cpu, b.binary}, args...)...)
	}
	cmd.Env = append(os.Environ(), "BENCH_SMTP_PASSWORD="+mailsink.Password, "BENCH_JWT_SECRET="+tokenSecret)
	if err := b.start(ctx, s, cmd, func() error { return isReady(ops) }); err != nil {
		return nil, err
	}
	s.name = "fingerpost"
	b.say("ready after %.1f s", s.ready.Seconds())
	return s, nil
}

func (b *bench) dataDir(name string) string { return filepath.Join(b.work, "store-"+name) }

func (b *bench) clearStore(name string) error {
	if err := os.RemoveAll(b.dataDir(name)); err != nil {
		return fmt.Errorf("delete the old store: %w", err)
	}
	return nil
}

// serve opens the corpus of the options and starts fingerpost on it.
func (b *bench) serve(ctx context.Context) (*server, *corpus, error) {
	c, err := b.openCorpus("corpus-", b.corpus)
	if err != nil {
		return nil, nil, err
	}
	s, err := b.fingerpost(ctx, c.String(), c.config)
	return s, c, err
}

// openEdited is openCorpus with the parameters of the options, for a corpus whose files will change.
func (b *bench) openEdited(prefix string) (*corpus, error) {
	c, err := b.openCorpus(prefix, b.corpus)
	if err == nil {
		err = c.edited()
	}
	return c, err
}

// openCorpus makes or reuses the corpus of the parameters, in a folder of its own below the work folder.
func (b *bench) openCorpus(prefix string, p corpusParams) (*corpus, error) {
	b.say("corpus: %d projects, %d domains", p.Projects, p.Domains)
	return openCorpus(filepath.Join(b.work, prefix+p.String()), p)
}

// processes returns a process and its child processes, recursively. A kernel without CONFIG_PROC_CHILDREN shows none.
func processes(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // fails only on a bad pattern
	for _, list := range lists {
		text, _ := os.ReadFile(list) // fails if the thread has just ended
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, processes(child)...)
			}
		}
	}
	return all
}

const ticks = 100 // a second, of the kernel's counters of former children

// processCPU returns the CPU time of a process and its present and former children so far.
func processCPU(pid int) (total time.Duration, err error) {
	for _, one := range processes(pid) {
		own, err1 := cpuClock(one)
		p, err2 := procfs.NewProc(one)
		stat, err3 := p.Stat()
		switch err := errors.Join(err1, err2, err3); {
		case err == nil:
			total += own + time.Duration(stat.CUTime+stat.CSTime)*time.Second/ticks
		case one == pid: // otherwise it has just ended, and is among its parent's former children from now on
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
	}
	return total, nil
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

// memory is resident memory in MiB.
type memory struct{ now, peak float64 }

// memory returns the resident memory of the server, including its worker processes: shared pages count for each.
func (s *server) memory() (memory, error) { return memoryOf(processes(s.pid)...) }

func memoryOf(pids ...int) (total memory, err error) {
	for _, pid := range pids {
		p, err1 := procfs.NewProc(pid)
		status, err2 := p.NewStatus()
		if err := errors.Join(err1, err2); err != nil {
			return total, fmt.Errorf("read memory: %w", err)
		}
		total.now += mib(status.VmRSS)
		total.peak += mib(status.VmHWM)
	}
	return total, nil
}

func mib[N int64 | uint64](bytes N) float64 { return float64(bytes) / (1 << 20) }

// metrics reads the metrics of an ops listener: the value by everything that stands before it in a line. There are none
// without an address.
func metrics(ops string) (map[string]float64, error) {
	if ops == "" {
		return nil, nil
	}
	c := wire.NewClient(ops)
	defer c.Close()
	a, err := c.Must("GET", "/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(a.Body)) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if v, err := strconv.ParseFloat(line[at+1:], 64); at > 0 && err == nil {
			values[line[:at]] = v
		}
	}
	return values, nil
}

// scrape returns how long a scrape of the metrics takes: the median of some.
func (s *server) scrape() (time.Duration, error) {
	took := make([]time.Duration, 21)
	for i := range took {
		began := time.Now()
		if _, err := metrics(s.ops); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// hitShare is the part of lookups between two readings of the metrics that the cache answered.
func hitShare(before, after map[string]float64) float64 {
	hits, total := 0.0, 0.0
	for name, v := range after {
		if label, ok := strings.CutPrefix(name, `fingerpost_resolve_cache_total{result="`); ok {
			total += v - before[name]
			if label == `hit"}` {
				hits = v - before[name]
			}
		}
	}
	return hits / max(1, total)
}
