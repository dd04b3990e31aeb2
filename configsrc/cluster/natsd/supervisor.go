package natsd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nkeys"
)

// A Supervisor keeps the built-in NATS server running, as a process of its own: whatever happens to the engine, the
// authority goes on answering. Methods are safe for concurrent use.
type Supervisor struct {
	command func() *exec.Cmd // makes the server's process; its stdin, stdout and stderr are taken
	log     *slog.Logger
	seed    []byte // the authority's key, made anew with each Supervisor, never on the disk

	mu     sync.Mutex // guards the fields below
	config Config
	stdin  io.Writer // nil: no process runs
	ready  *serverReady
	cmd    *exec.Cmd
	starts int
	broken bool      // the server has said that it stores nothing more
	holes  bool      // the server has said that a file of its stream is gone
	minute time.Time // since when lines are counted
	lines  int
}

// NewSupervisor makes a Supervisor. config.Authority is set by it. command makes the process that calls Run.
func NewSupervisor(config Config, command func() *exec.Cmd, log *slog.Logger) (*Supervisor, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	s := &Supervisor{command: command, log: log, config: config}
	if s.seed, err = pair.Seed(); err != nil {
		return nil, err
	}
	s.config.Authority, err = pair.PublicKey()
	return s, err
}

// Seed is the seed of the authority's key. The caller must not change it.
func (s *Supervisor) Seed() []byte { return s.seed }

// dialTime is how long a connection to the own machine may take.
const dialTime = 5 * time.Second

// Dial connects the authority to the server, wherever it listens after a restart. It implements nats.CustomDialer.
func (s *Supervisor) Dial(network, _ string) (net.Conn, error) {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	if ready == nil {
		return nil, errors.New("the built-in NATS server is not running")
	}
	return net.DialTimeout(network, ready.Local, dialTime)
}

// Addr returns the address for edges, "" while the server does not run.
func (s *Supervisor) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil {
		return ""
	}
	return s.ready.Addr
}

// Starts returns how often the server was started.
func (s *Supervisor) Starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}

// PID returns the server's process, 0 while it does not run.
func (s *Supervisor) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// SetEdges says which edges are let in. An edge that is not in edges any more loses its connection.
func (s *Supervisor) SetEdges(edges map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if maps.Equal(s.config.Edges, edges) {
		return nil
	}
	s.config.Edges = maps.Clone(edges)
	if s.stdin == nil {
		return nil // the next start has them
	}
	if err := json.NewEncoder(s.stdin).Encode(&s.config); err != nil {
		return fmt.Errorf("tell the NATS server its edges: %w", err)
	}
	return nil
}

// startTime is how long the server may take to get ready: it checks its files.
const startTime = 2 * time.Minute

// Start starts the server, and returns once it is ready. Call Run next. An address in use is tried for a while: the
// server of an earlier process may be ending.
func (s *Supervisor) Start(ctx context.Context) (wait func() error, err error) {
	for end := time.Now().Add(3 * time.Second); ; {
		if wait, err = s.start(ctx); err == nil || time.Now().After(end) || ctx.Err() != nil {
			return wait, err
		}
		_ = pause(ctx, 100*time.Millisecond)
	}
}

func (s *Supervisor) start(ctx context.Context) (wait func() error, err error) {
	if err := os.MkdirAll(s.config.Dir, 0o700); err != nil {
		return nil, err
	}
	cmd := s.command()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the NATS server: %w", err)
	}
	s.mu.Lock()
	s.cmd, s.stdin, s.broken, s.holes = cmd, stdin, false, false
	s.starts++
	err = json.NewEncoder(stdin).Encode(&s.config)
	s.mu.Unlock()

	var last string // what the process said last
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			last = lines.Text()
			s.logLine(last)
		}
	}()
	answer := make(chan *serverReady, 1)
	go func() {
		var ready serverReady
		if json.NewDecoder(stdout).Decode(&ready) == nil {
			answer <- &ready
		}
		_, _ = io.Copy(io.Discard, stdout)
		close(answer)
	}()
	end := func() error { // waits for the process
		<-logged
		for range answer {
		}
		s.mu.Lock()
		s.stdin, s.ready = nil, nil
		s.mu.Unlock()
		stdin.Close()
		return cmd.Wait()
	}
	var ready *serverReady
	if err == nil {
		select {
		case ready = <-answer:
		case <-time.After(startTime):
		case <-ctx.Done():
		}
	}
	if ready == nil {
		_ = cmd.Process.Kill()
		if ended := end(); err == nil {
			err = ended
		}
		if last != "" {
			return nil, fmt.Errorf("start the NATS server: %s", last)
		}
		return nil, fmt.Errorf("start the NATS server: %w", errors.Join(err, ctx.Err()))
	}
	s.mu.Lock()
	s.ready = ready
	s.config.Listen = ready.Addr // of port 0: the same again after a restart
	s.mu.Unlock()
	return end, nil
}

// logLines is how many lines of the server are logged in a minute: a client whose key is refused comes again and again.
const logLines = 30

// writeFailed is in the line of a server that could not write into its stream. From then on it stores nothing and
// answers no publish, also when the disk has room again, until it is started again (setWriteErr in its filestore.go).
const writeFailed = "Critical write error"

// fileGone is in the line of a server that misses a file of its stream, because somebody has removed a part of its
// folder. It goes on with what it has in memory: it refuses publishes, or leaves messages out of its answers, and says
// nothing of that to clients. Started again, it knows what is left (errNoBlkData in its filestore.go).
const fileGone = "message block data missing"

func (s *Supervisor) logLine(line string) {
	s.mu.Lock()
	s.broken = s.broken || strings.Contains(line, writeFailed)
	s.holes = s.holes || strings.Contains(line, fileGone)
	now := time.Now()
	if now.Sub(s.minute) > time.Minute {
		s.minute, s.lines = now, 0
	}
	s.lines++
	n := s.lines
	s.mu.Unlock()
	switch {
	case n < logLines:
		s.log.Warn("NATS server: " + line)
	case n == logLines:
		s.log.Warn("NATS server: " + line + " (no more lines for a minute)")
	}
}

// folderEvery is how often the folder is looked for.
const folderEvery = time.Second

// Run keeps the server running until ctx ends. wait is Start's.
func (s *Supervisor) Run(ctx context.Context, wait func() error) {
	backoff := 100 * time.Millisecond
	for {
		started := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- wait() }()
		err := s.watch(ctx, ended)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > time.Minute {
			backoff = 100 * time.Millisecond
		}
		s.log.Error("the NATS server has ended: it is started again", "error", err)
		for {
			if pause(ctx, backoff) != nil {
				return
			}
			backoff = min(2*backoff, 10*time.Second)
			if wait, err = s.start(ctx); err == nil {
				break
			}
			s.log.Error("the NATS server does not start: it is tried again", "error", err)
		}
	}
}

// said returns what the server has said of its files since its start.
func (s *Supervisor) said() (broken, holes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken, s.holes
}

// hasRoom reports whether a file of 1 MiB can be written into a folder.
func hasRoom(dir string) bool {
	name := filepath.Join(dir, "room.tmp")
	defer os.Remove(name)
	return os.WriteFile(name, make([]byte, 1<<20), 0o600) == nil
}

// watch returns when the process has ended. It ends it when ctx does; when the stream's folder or a file in it is gone,
// since the engine would go on without; and when its disk was full and has room again. Until then it goes on, since
// edges read from it and forward writes through it.
func (s *Supervisor) watch(ctx context.Context, ended chan error) error {
	look := time.NewTicker(folderEvery)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			s.end()
			return <-ended
		case <-look.C:
			if _, err := os.Stat(filepath.Join(s.config.Dir, "jetstream")); errors.Is(err, os.ErrNotExist) {
				s.end()
				<-ended
				return fmt.Errorf("its folder %s is gone", s.config.Dir)
			}
			broken, holes := s.said()
			if holes {
				s.end()
				<-ended
				return fmt.Errorf("files in its folder %s are gone", s.config.Dir)
			}
			if broken && hasRoom(s.config.Dir) {
				s.end()
				<-ended
				return errors.New("a write had failed, and its disk has room again")
			}
		}
	}
}

// end ends the process. Its files are synced.
func (s *Supervisor) end() {
	s.mu.Lock()
	cmd := s.cmd
	s.mu.Unlock()
	_ = cmd.Process.Kill()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
