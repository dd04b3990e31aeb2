package testrig

import (
	"bytes"
	"sync"
)

// A Log is a buffer that several goroutines write and read, such as the log of a server under test. The zero value is
// empty.
type Log struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write adds p. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
