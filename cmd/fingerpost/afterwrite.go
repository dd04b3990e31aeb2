package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"fingerpost/api/ops"
	"fingerpost/configsrc"
)

const (
	// afterGather is the debounce: the writes of a burst go into one run.
	afterGather = 100 * time.Millisecond
	// The backoff after a failed run doubles from the first value to the second.
	afterRetry, afterRetryMost = time.Second, time.Minute
	// afterKill is how long a command that has run out of time may take to end.
	afterKill = 3 * time.Second
	// maxVariable bounds each variable of a run, in bytes; Linux allows 128 KiB. The rest goes into the next run.
	maxVariable = 64 << 10
	// maxPending is how many writes wait one by one. Beyond it, only the newest request of each path and key is kept.
	maxPending = 20_000
	// maxOutput is how many bytes of the end of a run's output are kept.
	maxOutput = 4 << 10
)

// An afterWrite runs the command of --after-write (cmd/fingerpost/README.md): one run at a time, for all writes since
// the last, without blocking a writer. A failed run is repeated, together with later writes, until one succeeds: no
// write is left out, and some may be reported twice. Safe for concurrent use; a nil one does nothing.
type afterWrite struct {
	command string
	dir     string        // the config folder, absolute
	limit   time.Duration // of one run
	log     *slog.Logger

	wake  chan struct{}      // of capacity 1: there is work
	close context.CancelFunc // lets loop make its last runs
	kill  context.CancelFunc // ends the running command
	done  chan struct{}      // closed at the end of loop

	mu      sync.Mutex // guards what follows
	pending []configsrc.Written
	running int // how many of pending, the first ones, the current run is for
	status  ops.AfterWriteStatus
}

// newAfterWrite starts the goroutine that waits for writes. It returns nil for an empty command.
func newAfterWrite(command, dir string, limit time.Duration, log *slog.Logger) (*afterWrite, error) {
	if command == "" {
		return nil, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	open, close := context.WithCancel(context.Background())
	ctx, kill := context.WithCancel(context.Background())
	a := &afterWrite{command: command, dir: abs, limit: limit, log: log, wake: make(chan struct{}, 1), close: close,
		kill: kill, done: make(chan struct{})}
	go a.loop(ctx, open)
	return a, nil
}

// add queues writes. It returns at once.
func (a *afterWrite) add(written []configsrc.Written) {
	a.mu.Lock()
	a.pending = append(a.pending, written...)
	if len(a.pending) > maxPending {
		a.pending = append(a.pending[:a.running], newestOfEach(a.pending[a.running:])...)
	}
	a.mu.Unlock()
	a.wakeUp()
}

func (a *afterWrite) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// newestOfEach keeps the newest write of each path and key.
func newestOfEach(all []configsrc.Written) []configsrc.Written {
	type pathAndKey struct{ path, key string }
	seen := map[pathAndKey]bool{}
	var kept []configsrc.Written
	for _, w := range slices.Backward(all) {
		if k := (pathAndKey{w.Path, w.By.Key}); !seen[k] {
			seen[k] = true
			kept = append(kept, w)
		}
	}
	slices.Reverse(kept)
	return kept
}

// finish runs the pending writes and returns when that is done; when ctx ends, it kills the running command. A second
// call does nothing.
func (a *afterWrite) finish(ctx context.Context) {
	if a == nil {
		return
	}
	a.close()
	select {
	case <-a.done:
	case <-ctx.Done():
	}
	a.kill()
	<-a.done
}

// Status returns the current state.
func (a *afterWrite) Status() ops.AfterWriteStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	st := a.status
	st.Running, st.Pending = a.running > 0, len(a.pending)
	return st
}

// loop runs the command with ctx whenever there is work, and a last time when open has ended.
func (a *afterWrite) loop(ctx, open context.Context) {
	defer close(a.done)
	rest := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-open.Done():
		}
	}
	pause := afterRetry
	for {
		select {
		case <-a.wake:
			rest(afterGather)
		case <-open.Done():
		}
		last := open.Err() != nil
		for a.runBatch(ctx) {
			pause = afterRetry
		}
		n := a.Status().Pending
		if last {
			if n > 0 {
				a.log.Warn("after-write: the command has not succeeded for the last writes", "writes", n)
			}
			return
		}
		if n > 0 {
			rest(pause)
			pause = min(2*pause, afterRetryMost)
			a.wakeUp()
		}
	}
}

// runBatch runs the command once. It reports whether there may be more to do: something was pending, and the run
// succeeded.
func (a *afterWrite) runBatch(ctx context.Context) (more bool) {
	a.mu.Lock()
	n, env := batch(a.pending)
	a.running = n
	a.mu.Unlock()
	if n == 0 {
		return false
	}
	start := time.Now()
	output, err := a.run(ctx, env)
	took := time.Since(start).Round(time.Millisecond).String()
	a.mu.Lock()
	a.running, a.status.LastRun, a.status.LastError = 0, start.UTC(), ""
	a.status.Runs++
	if err != nil {
		a.status.Failures++
		a.status.LastError = strings.TrimSpace(err.Error() + ": " + output)
	} else {
		a.pending = slices.Delete(a.pending, 0, n)
	}
	a.mu.Unlock()
	if err != nil {
		a.log.Warn("after-write: the command failed; it runs again, with later writes", "writes", n, "took", took, "error",
			err, "output", output)
		return false
	}
	a.log.Info("after-write: done", "writes", n, "took", took)
	return true
}

// batch returns how many of the pending writes go into one run, and the run's variables.
func batch(pending []configsrc.Written) (n int, env []string) {
	var paths, keys, ids list
	for _, w := range pending {
		if paths.size+len(w.Path) > maxVariable || keys.size+len(w.By.Key) > maxVariable ||
			ids.size+len(w.By.RequestID) > maxVariable {
			break
		}
		paths.add(w.Path)
		keys.add(w.By.Key)
		ids.add(w.By.RequestID)
		n++
	}
	return n, []string{
		"FINGERPOST_PATHS=" + strings.Join(paths.words, "\n"),
		"FINGERPOST_KEYS=" + strings.Join(keys.words, " "),
		"FINGERPOST_REQUEST_IDS=" + strings.Join(ids.words, " "),
	}
}

// A list keeps each word once.
type list struct {
	words []string
	seen  map[string]bool
	size  int // bytes, with separators
}

func (l *list) add(word string) {
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	if !l.seen[word] {
		l.seen[word] = true
		l.words = append(l.words, word)
		l.size += len(word) + 1
	}
}

// run runs the command in the config folder, in a process group of its own; all of it is killed when its time is up.
// Text that callers have chosen is only in variables, never in the command line.
func (a *afterWrite) run(ctx context.Context, env []string) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	out := new(tail)
	cmd := exec.CommandContext(ctx, "sh", "-c", a.command)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), append(env, "FINGERPOST_CONFIG="+a.dir)...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = afterKill
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	err = cmd.Run()
	if cmd.Process != nil && (ctx.Err() != nil || errors.Is(err, exec.ErrWaitDelay)) {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // kills what ignored the first signal or was left behind
	}
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("ended after %s (--after-write-timeout): %w", a.limit, err)
	case errors.Is(err, exec.ErrWaitDelay):
		err = errors.New("it left a process behind that kept its output open")
	}
	return out.String(), err
}

// A tail keeps the end of what is written to it.
type tail struct {
	b   []byte
	cut bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - maxOutput; over > 0 {
		t.b, t.cut = slices.Delete(t.b, 0, over), true
	}
	return len(p), nil
}

func (t *tail) String() string {
	s := strings.ToValidUTF8(string(bytes.TrimSpace(t.b)), "\uFFFD")
	if t.cut {
		return "… " + s
	}
	return s
}
