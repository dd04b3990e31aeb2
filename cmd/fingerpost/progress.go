package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

const (
	progressAfter = time.Second // shorter work shows nothing
	progressEvery = 200 * time.Millisecond
)

// A progress shows on a terminal how far long work is, after its first second, in one line that end removes. A nil one
// shows nothing. Safe for concurrent use.
type progress struct {
	out         io.Writer
	what        string // such as "files read"
	start       time.Time
	done, total atomic.Int64
	mu          sync.Mutex // guards out's last line
	shown       bool
	stop        chan struct{}
	ended       sync.WaitGroup
}

// progress starts the display if stderr is a terminal; otherwise it returns nil.
func (t terminal) progress(what string) *progress {
	if f, ok := t.err.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return showProgress(t.err, what)
}

func showProgress(out io.Writer, what string) *progress {
	p := &progress{out: out, what: what, start: time.Now(), stop: make(chan struct{})}
	p.ended.Go(p.run)
	return p
}

// set records how much is done.
func (p *progress) set(done, total int) {
	if p != nil {
		p.total.Store(int64(total))
		p.done.Store(int64(done))
	}
}

// end removes the line.
func (p *progress) end() {
	if p != nil {
		close(p.stop)
		p.ended.Wait()
	}
}

func (p *progress) run() {
	for wait := progressAfter; ; wait = progressEvery {
		select {
		case <-p.stop:
			p.above(func() {})
			return
		case <-time.After(wait):
			p.mu.Lock()
			fmt.Fprint(p.out, eraseLine+p.line(time.Since(p.start)))
			p.shown = true
			p.mu.Unlock()
		}
	}
}

const eraseLine = "\r\x1b[K"

// above lets print write its own lines to the terminal.
func (p *progress) above(print func()) {
	if p == nil {
		print()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.out, eraseLine)
		p.shown = false
	}
	print()
}

// line returns the text after a time, with the estimated time for the rest at the speed so far.
func (p *progress) line(elapsed time.Duration) string {
	done, total := p.done.Load(), p.total.Load()
	if done == 0 || total == 0 {
		return fmt.Sprintf("%s: %d so far", p.what, done)
	}
	left := time.Duration(float64(elapsed) * float64(total-done) / float64(done))
	return fmt.Sprintf("%s: %d of %d, about %s left", p.what, done, total, left.Round(time.Second))
}
