// Package progress shows on a terminal how far long work is, in one line at its bottom.
//
// It promises that
//   - work that takes less than a second shows nothing,
//   - End removes the line, so that what a command prints at last stands alone,
//   - what Above prints meanwhile stands above the line, whole.
//
// It needs a writer that is a terminal: the caller finds out whether there is one, and has a nil Line if not, which
// shows nothing. It does not decide how work is counted, and knows no command.
package progress

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	after = time.Second // shorter work shows nothing
	every = 200 * time.Millisecond
)

// A Line shows how far one piece of work is. A nil one shows nothing. Safe for concurrent use.
type Line struct {
	out         io.Writer
	what        string // such as "files read"
	start       time.Time
	done, total atomic.Int64
	mu          sync.Mutex // guards out's last line
	shown       bool
	stop        chan struct{}
	ended       sync.WaitGroup
}

// Start starts the display.
func Start(out io.Writer, what string) *Line {
	p := &Line{out: out, what: what, start: time.Now(), stop: make(chan struct{})}
	p.ended.Go(p.run)
	return p
}

// Set records how much is done.
func (p *Line) Set(done, total int) {
	if p != nil {
		p.total.Store(int64(total))
		p.done.Store(int64(done))
	}
}

// End removes the line.
func (p *Line) End() {
	if p != nil {
		close(p.stop)
		p.ended.Wait()
	}
}

func (p *Line) run() {
	for wait := after; ; wait = every {
		select {
		case <-p.stop:
			p.Above(func() {})
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

// Above lets print write its own lines to the terminal.
func (p *Line) Above(print func()) {
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
func (p *Line) line(elapsed time.Duration) string {
	done, total := p.done.Load(), p.total.Load()
	if done == 0 || total == 0 {
		return fmt.Sprintf("%s: %d so far", p.what, done)
	}
	left := time.Duration(float64(elapsed) * float64(total-done) / float64(done))
	return fmt.Sprintf("%s: %d of %d, about %s left", p.what, done, total, left.Round(time.Second))
}
