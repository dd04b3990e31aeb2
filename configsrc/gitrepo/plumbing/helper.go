package plumbing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// A helper is a git process that lives long and answers one request after the other, not concurrently.
type helper struct {
	git  *Command
	args []string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// ask sends a request and reads its answer. After an error the next request starts a new process.
func (h *helper) ask(request []byte, answer func(out *bufio.Reader) error) (err error) {
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
		h.close()
		return fmt.Errorf("git %s: %w", h.args[0], err)
	}
	return err
}

func (h *helper) close() {
	if h.cmd == nil {
		return
	}
	h.in.Close()
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGTERM)
	_ = h.cmd.Wait()
	h.cmd = nil
}
