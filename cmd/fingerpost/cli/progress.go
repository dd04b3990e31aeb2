package cli

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	progressAfter = time.Second // shorter work shows nothing
	progressEvery = 200 * time.Millisecond
)

// A Progress shows on a terminal how far one piece of work is, in a line at its bottom. End removes the line, and what
// Above prints meanwhile stands above it, whole. A nil one shows nothing. Safe for concurrent use.
type Progress struct {
	out         io.Writer
	what        string // such as "files read"
	start       time.Time
	done, total atomic.Int64
	mu          sync.Mutex // guards out's last line
	shown       bool
	stop        chan struct{}
	ended       sync.WaitGroup
}

// startProgress starts the display on a terminal.
func startProgress(out io.Writer, what string) *Progress {
	p := &Progress{out: out, what: what, start: time.Now(), stop: make(chan struct{})}
	p.ended.Go(p.run)
	return p
}

// Set records how much is done.
func (p *Progress) Set(done, total int) {
	if p != nil {
		p.total.Store(int64(total))
		p.done.Store(int64(done))
	}
}

// End removes the line.
func (p *Progress) End() {
	if p != nil {
		close(p.stop)
		p.ended.Wait()
	}
}

func (p *Progress) run() {
	for wait := progressAfter; ; wait = progressEvery {
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
func (p *Progress) Above(print func()) {
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
func (p *Progress) line(elapsed time.Duration) string {
	done, total := p.done.Load(), p.total.Load()
	if done == 0 || total == 0 {
		return fmt.Sprintf("%s: %d so far", p.what, done)
	}
	left := time.Duration(float64(elapsed) * float64(total-done) / float64(done))
	return fmt.Sprintf("%s: %d of %d, about %s left", p.what, done, total, left.Round(time.Second))
}
