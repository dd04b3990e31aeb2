package plumbing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// A helper is a git process that lives long and answers one request after the other. It is safe for concurrent use.
type helper struct {
	git  *Command
	args []string

	mu  sync.Mutex // guards what follows; held for one request
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// ask sends a request and reads its answer. After an error the next request starts a new process.
func (h *helper) ask(request []byte, answer func(out *bufio.Reader) error) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cmd == nil {
		cmd := h.git.make(context.Background(), nil, h.args...)
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("git %s: %w", h.args[0], err)
		}
		h.cmd, h.in, h.out = cmd, in, bufio.NewReaderSize(out, 64<<10)
	}
	if _, err = h.in.Write(request); err == nil {
		err = answer(h.out)
	}
	if err != nil && !errors.Is(err, ErrMissing) {
		h.end()
		return fmt.Errorf("git %s: %w", h.args[0], err)
	}
	return err
}

func (h *helper) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end()
}

// end ends the process. The caller holds mu.
func (h *helper) end() {
	if h.cmd == nil {
		return
	}
	h.in.Close()
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGTERM)
	_ = h.cmd.Wait()
	h.cmd = nil
}
