package smtp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// maxSessionBytes is how much one connection may receive from the server, including TLS. A server that sends more is
// cut off.
const maxSessionBytes = 1 << 20

// errFlood means that a server sends more than the limits allow.
var errFlood = errors.New("the server says more than any reply needs")

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// A wire is a TCP connection that counts what it reads, and whose reads and writes a context can end. Apart from that
// context, one goroutine uses it at a time.
type wire struct {
	net.Conn
	left int // bytes that may still be read

	mu  sync.Mutex      // guards ctx, and the deadline against it
	ctx context.Context // its end ends reads and writes; nil for none
}

func (w *wire) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, errFlood
	}
	n, err := w.Conn.Read(p[:min(len(p), w.left)])
	w.left -= n
	return n, err
}

// SetWriteDeadline does nothing: package tls would set five seconds for its closing alert.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// within sets a deadline for what follows. It does not revive what a context has ended.
func (w *wire) within(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended() {
		_ = w.Conn.SetDeadline(time.Now().Add(d))
	}
}

func (w *wire) ended() bool { return w.ctx != nil && w.ctx.Err() != nil }

// watch lets the end of ctx end all reads and writes until release is called, which may be called more than once. A
// deadline that the context has moved stays until the next call of within.
func (w *wire) watch(ctx context.Context) (release func()) {
	w.mu.Lock()
	w.ctx = ctx
	w.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.ended() { // otherwise it comes late: the wire may serve another mail by now
			_ = w.Conn.SetDeadline(past)
		}
	})
	return func() {
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ctx = nil
	}
}
