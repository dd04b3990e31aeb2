package main

import (
	"net"
	"sync"
	"testing"
	"time"
)

// A wire is a TCP proxy whose traffic a test can stop.
type wire struct {
	ln     net.Listener
	target string
	pace   *time.Ticker // not nil: each of its ticks lets slowBytes through, in either direction

	mu     sync.Mutex    // guards the fields below
	still  chan struct{} // closed while bytes go through
	refuse bool
	closed bool
	conns  map[net.Conn]bool
}

func newWire(t testing.TB, target string) *wire { return newWireWith(t, target, nil) }

func newWireWith(t testing.TB, target string, pace *time.Ticker) *wire {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{ln: ln, target: target, pace: pace, still: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(w.still)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.run()
	}()
	t.Cleanup(func() {
		w.mu.Lock()
		w.closed = true
		w.mu.Unlock()
		w.heal()
		ln.Close()
		<-ended
	})
	return w
}

// slowBytes is what a slow wire lets through at a tick.
const slowBytes = 1 << 10

func (w *wire) addr() string { return w.ln.Addr().String() }

// freeze lets nothing through, and tells nobody: the connections stay, as with a firewall that drops packets.
func (w *wire) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.still = make(chan struct{})
}

// cut ends all connections, and new ones as they come.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = true
	for c := range w.conns {
		c.Close()
	}
}

// heal ends freeze and cut.
func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = false
	select {
	case <-w.still:
	default:
		close(w.still)
	}
	if w.closed {
		for c := range w.conns {
			c.Close()
		}
	}
}

// run takes connections until the listener closes, and waits for their ends.
func (w *wire) run() {
	var copies sync.WaitGroup
	defer copies.Wait()
	for {
		in, err := w.ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", w.target)
		if err != nil { // the target is down
			in.Close()
			continue
		}
		w.mu.Lock()
		if w.refuse || w.closed {
			in.Close()
			out.Close()
		}
		w.conns[in], w.conns[out] = true, true
		w.mu.Unlock()
		for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
			copies.Go(func() { w.copy(pair[0], pair[1]) })
		}
	}
}

func (w *wire) copy(to, from net.Conn) {
	defer func() {
		to.Close()
		from.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, from)
	}()
	buf := make([]byte, 32<<10)
	if w.pace != nil {
		buf = buf[:slowBytes]
	}
	for {
		n, err := from.Read(buf)
		w.mu.Lock()
		still := w.still
		w.mu.Unlock()
		<-still
		if w.pace != nil {
			<-w.pace.C
		}
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
