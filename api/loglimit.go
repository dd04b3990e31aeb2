package api

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// anonymousLines is how many failed requests without a good key are logged one by one in a second: anybody can send
	// them, as fast as the network allows. The metrics count all of them.
	anonymousLines = 20
	// countEvery is the time until those that were not logged are counted in a line.
	countEvery = 10 * time.Second
)

// A logLimit bounds the lines of failed requests without a good key. Safe for concurrent use.
type logLimit struct {
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	second  int64
	lines   int // in this second
	dropped int
	timer   *time.Timer // of the line that counts; nil while nothing has been dropped
}

// allow reports whether the line may be written, and counts it otherwise.
func (l *logLimit) allow(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := now.Unix(); second != l.second {
		l.second, l.lines = second, 0
	}
	if l.lines < anonymousLines {
		l.lines++
		return true
	}
	l.dropped++
	if l.timer == nil {
		l.timer = time.AfterFunc(countEvery, l.flush)
	}
	return false
}

// flush writes the line that counts, if there is something to count.
func (l *logLimit) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		return
	}
	l.timer.Stop()
	l.log.Warn("failed requests without a good key were not logged", "count", l.dropped)
	l.timer, l.dropped = nil, 0
}
