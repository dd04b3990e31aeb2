package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A server is a process under measurement: fingerpost, a baseline or a peer.
type server struct {
	name  string
	addr  string // "127.0.0.1:port"
	ops   string // "http://127.0.0.1:port" of the ops listener; the floor has none
	pid   int
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	ready time.Duration // from the start of the process to readiness
}

const (
	startTimeout = 10 * time.Minute // cold starts of large corpora take long
	stopTimeout  = 30 * time.Second
)

// startServer runs a program and waits until it has printed its addresses and, if it has an ops listener, is ready. Its
// output goes to logPath.
func startServer(ctx context.Context, name, logPath, program string, args ...string) (*server, error) {
	logFile, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer logFile.Close()
	s := &server{name: name, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), "BENCH_SMTP_PASSWORD=none")
	s.cmd.Stderr = logFile
	endWithBench(s.cmd)
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	// Nothing is written to it: its end tells the floor that bench has ended.
	if _, err := s.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s.pid = s.cmd.Process.Pid
	addresses := make(chan [2]string, 1)
	go func() {
		scanAddresses(stdout, addresses)
		_ = s.cmd.Wait() // the log has its last output; a stopped server may end with any status
		close(s.ended)
	}()
	if err := s.await(ctx, began, addresses); err != nil {
		s.stop()
		return nil, fmt.Errorf("start %s: %w (its log is %s)", name, err, logPath)
	}
	return s, nil
}

// scanAddresses finds the lines "listening on http://…" and "ops on http://…", and reads on to the end so that the
// process never blocks on its output. Both addresses may be empty at the end.
func scanAddresses(r io.Reader, found chan<- [2]string) {
	var addr, ops string
	sent := false
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "listening on http://"); ok {
			addr = strings.TrimSpace(url)
		}
		if _, url, ok := strings.Cut(lines.Text(), "ops on http://"); ok {
			ops = "http://" + strings.TrimSpace(url)
		}
		if addr != "" && !sent && (ops != "" || strings.HasPrefix(lines.Text(), floorGreeting)) {
			found <- [2]string{addr, ops}
			sent = true
		}
	}
	if !sent {
		close(found)
	}
}

func (s *server) await(ctx context.Context, began time.Time, addresses <-chan [2]string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case a, ok := <-addresses:
		if !ok {
			return errors.New("it ended without naming its addresses")
		}
		s.addr, s.ops = a[0], a[1]
	case <-ctx.Done():
		return fmt.Errorf("wait for its addresses: %w", ctx.Err())
	}
	for s.ops != "" {
		if res, err := fetch(s.ops + "/readyz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("it ended before it was ready: %v", s.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("wait for readiness: %w", ctx.Err())
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

// cpu returns the CPU time of the server so far, including its worker processes.
func (s *server) cpu() (time.Duration, error) {
	var total time.Duration
	for _, pid := range append(descendants(s.pid), s.pid) {
		used, err := processCPU(pid)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.name, err)
		}
		total += used
	}
	return total, nil
}

// memory returns the resident memory of the server, including its worker processes: shared pages count for each.
func (s *server) memory() (total memory, err error) {
	for _, pid := range append(descendants(s.pid), s.pid) {
		m, err := processMemory(pid)
		if err != nil {
			return memory{}, fmt.Errorf("%s: %w", s.name, err)
		}
		total.now += m.now
		total.peak += m.peak
	}
	return total, nil
}

// buildBinary builds fingerpost from this checkout into the work folder, unless a ready one was named.
func (b *bench) buildBinary(ctx context.Context) (string, error) {
	if b.binary != "" {
		return b.binary, nil
	}
	path := filepath.Join(b.work, "fingerpost")
	b.say("building %s", path)
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "fingerpost/cmd/fingerpost").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build fingerpost: %w\n%s", err, out)
	}
	b.binary = path // one build per run is enough
	return path, nil
}

// fingerpost starts the program on a config folder. name distinguishes the stores and logs of several servers.
func (b *bench) fingerpost(ctx context.Context, name, config string, flags ...string) (*server, error) {
	if err := os.MkdirAll(b.work, 0o755); err != nil {
		return nil, err
	}
	binary, err := b.buildBinary(ctx)
	if err != nil {
		return nil, err
	}
	data := b.dataDir(name)
	if b.fresh {
		if err := os.RemoveAll(data); err != nil {
			return nil, fmt.Errorf("delete the old store: %w", err)
		}
	}
	args := append([]string{
		"serve", "--config", config, "--data", data, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0",
		"--log-format", "json",
	}, flags...)
	b.say("starting fingerpost on %s", config)
	s, err := startServer(ctx, "fingerpost", filepath.Join(b.work, name+".log"), binary, args...)
	if err == nil {
		b.say("ready after %.1f s", s.ready.Seconds())
	}
	return s, err
}

func (b *bench) dataDir(name string) string { return filepath.Join(b.work, "store-"+name) }

// cacheFlags returns the flags for -cache-size.
func (b *bench) cacheFlags() []string {
	if b.cacheSize == "" {
		return nil
	}
	return []string{"--cache-size", b.cacheSize}
}

// floor starts this program itself as the floor.
func (b *bench) floor(ctx context.Context, c *corpus, size int) (*server, error) {
	return b.baseline(ctx, kindFloor, c, size)
}

// baseline starts this program itself as one of the kinds of baseline.
func (b *bench) baseline(ctx context.Context, kind string, c *corpus, size int) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the %s: %w", kind, err)
	}
	logPath := filepath.Join(b.work, "baseline-"+strings.NewReplacer(" ", "-", "/", "-").Replace(kind)+".log")
	return startServer(ctx, kind, logPath, self, floorCommand,
		"-kind", kind, "-key", c.key, "-size", fmt.Sprint(size), "-projects", fmt.Sprint(c.Projects),
		"-domains", fmt.Sprint(c.Domains), "-seed", fmt.Sprint(c.Seed))
}

// openCorpus makes or reuses the corpus of the parameters.
func (b *bench) openCorpus(p corpusParams) (*corpus, error) {
	b.say("corpus: %d projects, %d domains", p.Projects, p.Domains)
	return openCorpus(filepath.Join(b.work, "corpus-"+p.String()), p)
}
