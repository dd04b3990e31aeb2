package gate

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

const (
	// lingerTime and lingerBytes bound the reading of what a refused client still sends: closing a socket with unread
	// bytes in it resets the connection, and the reset can overtake the answer.
	lingerTime  = time.Second
	lingerBytes = 8 << 20
	// keptHead is the largest buffer, in bytes, that an idle connection keeps.
	keptHead = 4 << 10
)

// A Conn stands between a peer and the HTTP library. It passes one strictly framed message at a time, and nothing after
// a message that it refuses. Only the goroutine that serves the connection may call Read, Write and the methods about
// messages and bodies; any goroutine may call Close and Abort.
type Conn struct {
	net.Conn          // the peer, through TLS if the listener has TLS
	raw      net.Conn // the socket under TLS
	gate     *Gate
	peer     netip.Addr // the IPv4 address, or the /64 of the IPv6 address; invalid for a Unix socket
	resolver Resolver   // nil: there is no fast path
	times    deadlines

	// State belongs to the listener's owner; ListenerOptions.Attach makes it. The gate does not look at it.
	State any

	in       reading
	question Question // scratch of the fast path
	refused  *Refusal // sticky: what was wrong with the last message
	head     []byte   // the current message's head as far as it came: the library's memory, or kept
	kept     []byte   // our own copy of a head, if the library may overwrite its memory

	spoke   atomic.Bool  // the first byte has arrived
	known   atomic.Bool  // the peer has sent a good key
	active  atomic.Int64 // about when it last began to wait for a request, see Gate.now
	lingers atomic.Bool  // the client may still be sending
	life    life
	charge  bodyCharge // of the current request
}

// reading is the state of a Conn's input.
type reading struct {
	scan   headScan
	chunks chunkScan
	coded  bool   // a chunked body has not been read to its end
	left   int64  // bytes of any other body that have not been read
	held   []byte // read from the peer, follows what the library has got
}

// Read returns the head of the next message, after dropping what is left of the current message's body. After a refusal
// it first returns one byte and then the refusal, because the library closes without an answer if it has read nothing.
func (c *Conn) Read(p []byte) (int, error) {
	switch {
	case c.refused != nil:
		return 0, c.refused
	case len(p) == 0:
		return 0, nil
	case !c.life.wait():
		return 0, io.EOF
	case c.unfinished():
		if err := c.skipBody(); err != nil {
			return 0, err
		}
	}
	return c.readHead(p)
}

// readHead waits for a whole head. In the usual case one read brings exactly one message without a body, which stays
// where it is, in p.
func (c *Conn) readHead(p []byte) (int, error) {
	for {
		c.in.scan = headScan{}
		if len(c.in.held) > 0 {
			return c.gatherHead(p)
		}
		if c.gate.stopping.Load() {
			return 0, io.EOF
		}
		n, err := c.readSocket(p)
		if n == 0 {
			if errors.Is(err, os.ErrDeadlineExceeded) || c.life.over() {
				err = io.EOF // no part of a request has arrived: there is nothing to answer
			}
			return 0, err
		}
		if !c.times.served {
			c.spoke.Store(true)
		}
		end, bad := c.in.scan.feed(p[:n])
		switch {
		case bad != nil:
			return c.refuse(p, p[:n], bad)
		case end == 0:
			c.hold(p[:n])
			return c.gatherHead(p)
		}
		if end == n && !c.in.scan.hasBody() {
			answered, err := c.takeFastPath(p[:end])
			if err != nil {
				return 0, err
			}
			if answered {
				continue
			}
		}
		return c.beginMessage(p[:n], end)
	}
}

// gatherHead is readHead for a head that arrives in pieces or together with an earlier message.
func (c *Conn) gatherHead(p []byte) (int, error) {
	for {
		end, bad := c.in.scan.feed(c.in.held)
		switch {
		case bad != nil:
			return c.refuse(p, c.in.held, bad)
		case end > len(p) || end == 0 && len(c.in.held) >= len(p):
			return c.refuse(p, c.in.held, RefuseHeadSize)
		case end > 0:
			n := copy(p, c.in.held)
			rest := c.in.held[n:]
			c.in.held = c.in.held[:0]
			c.hold(rest) // moves it to the front of the same array
			return c.beginMessage(p[:n], end)
		}
		c.times.beginMessage(time.Now())
		n, err := c.readSocket(p)
		c.hold(p[:n])
		if n == 0 && err != nil {
			switch {
			case errors.Is(err, io.EOF):
				return c.refuse(p, c.in.held, refuseCut)
			case errors.Is(err, os.ErrDeadlineExceeded):
				return c.refuse(p, c.in.held, RefuseSlow)
			}
			return 0, err
		}
	}
}

// beginMessage starts the message whose head is got[:end], and returns end. The bytes after the head are held back: the
// body is for the handler, and the library never gets two messages at once.
func (c *Conn) beginMessage(got []byte, end int) (int, error) {
	if !c.life.hand() {
		return 0, io.EOF
	}
	scan := &c.in.scan
	if len(got) == end && !scan.hasBody() {
		c.head = got // the library reads nothing more before it has answered
		c.times.endMessage()
		return end, nil
	}
	c.keepHead(got[:end])
	c.holdBefore(got[end:])
	if scan.hasBody() {
		c.times.beginMessage(time.Now())
		c.in.coded, c.in.chunks = scan.chunked, chunkScan{}
		c.in.left = max(scan.length, 0)
	} else {
		c.times.endMessage()
	}
	return end, nil
}

func (c *Conn) endMessage() {
	c.in.coded, c.in.left = false, 0
	c.times.endMessage()
}

// unfinished reports whether a part of the current message's body has not been read.
func (c *Conn) unfinished() bool { return c.in.coded || c.in.left > 0 }

// refuse ends the connection with the refusal bad. seen is the part of the message that has arrived.
func (c *Conn) refuse(p, seen []byte, bad *Refusal) (int, error) {
	if !c.life.hand() {
		return 0, io.EOF
	}
	c.refused = bad
	c.keepHead(seen[:min(len(seen), c.gate.limits.HeaderBytes)])
	p[0] = 'X'
	return 1, nil
}

func (c *Conn) keepHead(head []byte) {
	if cap(c.kept) > keptHead {
		c.kept = nil
	}
	c.kept = append(c.kept[:0], head...)
	c.head = c.kept
}

// take reads from held first, then from the peer.
func (c *Conn) take(p []byte) (int, error) {
	if len(c.in.held) == 0 {
		return c.readSocket(p)
	}
	n := copy(p, c.in.held)
	c.in.held = c.in.held[n:]
	return n, nil
}

func (c *Conn) hold(b []byte) {
	if len(c.in.held) == 0 && len(b) == 0 {
		if cap(c.in.held) > keptHead {
			c.in.held = nil
		}
		return
	}
	c.in.held = append(c.in.held, b...)
}

// holdBefore puts a copy of b in front of held, because b is the library's memory.
func (c *Conn) holdBefore(b []byte) {
	if len(b) > 0 {
		c.in.held = append(append(make([]byte, 0, len(b)+len(c.in.held)), b...), c.in.held...)
	}
}

func (c *Conn) readSocket(p []byte) (int, error) {
	now := time.Now()
	if by, set := c.times.forRead(now); set {
		if err := c.Conn.SetReadDeadline(by); err != nil {
			return 0, err
		}
		c.active.Store(int64(now.Sub(c.gate.begun)))
	}
	n, err := c.Conn.Read(p)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	by, ok := c.times.onceMore()
	if !ok || c.Conn.SetReadDeadline(by) != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write writes p, all of it or an error.
func (c *Conn) Write(p []byte) (int, error) {
	if by, set := c.times.forWrite(time.Now()); set {
		if err := c.Conn.SetWriteDeadline(by); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if by, ok := c.times.onceMore(); ok && c.Conn.SetWriteDeadline(by) == nil {
			var more int
			more, err = c.Conn.Write(p[n:])
			n += more
		}
	}
	c.times.written += int64(n)
	return n, err
}

// Close gives the connection back, at once or when the fast path has answered. After an answer to a request that was
// not read to its end it first reads what the client still sends, for a short time.
func (c *Conn) Close() error {
	if !c.life.close() {
		return nil
	}
	return c.close()
}

func (c *Conn) close() error {
	if c.lingers.Load() {
		c.linger()
	}
	err := c.Conn.Close()
	c.gate.leave(c)
	return err
}

func (c *Conn) linger() {
	type halfCloser interface{ CloseWrite() error }
	c.raw.SetDeadline(time.Now().Add(lingerTime))
	if half, ok := c.Conn.(halfCloser); ok && half.CloseWrite() != nil {
		return
	}
	if half, ok := c.raw.(halfCloser); ok && c.raw != c.Conn {
		half.CloseWrite()
	}
	io.Copy(io.Discard, io.LimitReader(c.raw, lingerBytes))
}
