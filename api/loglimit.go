package api

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// anonymousLines is how many failed requests without a good key are logged per second: anyone can send them, as
	// fast as the network allows. The metrics count all of them.
	anonymousLines = 20
	// countEvery is the time from the first unlogged request to the line with their number.
	countEvery = 10 * time.Second
)

// A logLimit bounds the log lines of failed requests without a good key. Safe for concurrent use.
type logLimit struct {
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	second  int64
	lines   int // in this second
	dropped int
	timer   *time.Timer // of the next flush; nil while nothing has been dropped
}

// allow reports whether a line may be written, and counts it if not.
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

// flush writes the line with the number of unlogged requests, if there are any.
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
