package smtp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// maxSessionBytes is what one connection may carry from the server, TLS included. A server that says more is not worth
// listening to.
const maxSessionBytes = 1 << 20

// errFlood is for a server that says more than the limits allow.
var errFlood = errors.New("the server says more than any reply needs")

// past is a deadline that has been missed.
var past = time.Unix(1, 0)

// A wire is a TCP connection that counts what is read, and whose reads and writes a context can end. Apart from the end of
// that context, one goroutine uses it at a time.
type wire struct {
	net.Conn
	left int // bytes that may still be read

	mu      sync.Mutex
	watcher *wireWatcher // whose context may end what is under way; nil for none
}

type wireWatcher struct{ ended bool }

func (w *wire) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, errFlood
	}
	n, err := w.Conn.Read(p[:min(len(p), w.left)])
	w.left -= n
	return n, err
}

// SetWriteDeadline does nothing: package tls would give its goodbye five seconds of its own.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// within gives what follows a time. It does not revive what a context has ended.
func (w *wire) within(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watcher == nil || !w.watcher.ended {
		_ = w.Conn.SetDeadline(time.Now().Add(d))
	}
}

// watch lets the end of ctx end all reads and writes until release is called, which may be called more than once.
// A deadline that the context has moved stays until the next call of within.
func (w *wire) watch(ctx context.Context) (release func()) {
	me := &wireWatcher{}
	w.mu.Lock()
	w.watcher = me
	w.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watcher == me { // else it comes late: the wire may serve another mail by now
			me.ended = true
			_ = w.Conn.SetDeadline(past)
		}
	})
	return func() {
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watcher == me {
			w.watcher = nil
		}
	}
}
