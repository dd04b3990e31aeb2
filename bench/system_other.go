//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"

	"github.com/prometheus/procfs"
)

// The load generator needs Linux; these let the package build elsewhere, for compare and report.

var errNotLinux = errors.New("the load generator needs Linux (epoll)")

type wire struct {
	busy     bool
	due      time.Duration
	question question
	out, in  []byte
}

func (w *wire) write() error { return errNotLinux }
func (w *wire) read() error  { return errNotLinux }

type poller struct{ wires []wire }

func newPoller(string, int) (*poller, error) { return nil, errNotLinux }

func (p *poller) wait(time.Duration) ([]*wire, error) { return nil, errNotLinux }
func (p *poller) reopen(*wire) error                  { return errNotLinux }
func (p *poller) close()                              {}

func pinThread() (release func()) { return func() {} }

func endWithBench(*exec.Cmd) {}

func cpuModel(procfs.FS) string { return "" }

func swapFiles(string, string) error { return errors.ErrUnsupported }

func syncDisks() {}

func cpuClock(int) (time.Duration, error) { return 0, errNotLinux }

func fileSystem(string) string { return "unknown" }
