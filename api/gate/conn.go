package gate

import (
	"bytes"
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
	// keptHeld is the largest buffer, in bytes, that an idle connection keeps.
	keptHeld = 4 << 10
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
	plain    Plain      // what the fast path answers
	times    deadlines

	// State belongs to the listener's owner; ListenerOptions.Attach makes it. The gate does not look at it.
	State any

	in       reading
	question Question // scratch of the fast path
	refused  *Refusal // sticky: what was wrong with the last message
	head     []byte   // the current message's head as far as it came, in the library's memory if it is complete

	spoke   atomic.Bool  // the first byte has arrived
	known   atomic.Bool  // the peer has sent a good key
	active  atomic.Int64 // about when it last began to wait for a request, see Gate.now
	lingers atomic.Bool  // the client may still be sending
	life    life
}

// reading is the state of a Conn's input.
type reading struct {
	scan   headScan
	chunks chunkScan
	left   int64  // bytes of the current body that have not been read, or unknownLength
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
	case c.in.left != 0:
		if err := c.skipBody(); err != nil {
			return 0, err
		}
	}
	return c.readHead(p)
}

// readHead waits for a whole head. In the usual case one read brings exactly one message without a body, which stays
// where it is, in p.
func (c *Conn) readHead(p []byte) (int, error) {
	for now := time.Now(); ; now = c.question.At { // again after an answer of the fast path, which took no time
		c.in.scan = headScan{}
		if len(c.in.held) > 0 {
			return c.gatherHead(p)
		}
		if cap(c.in.held) > keptHeld {
			c.in.held = nil
		}
		if c.times.served && c.gate.stopping.Load() {
			return 0, io.EOF
		}
		n, err := c.readSocket(p, now)
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
		if bad != nil {
			return c.refuse(p, p[:n], bad)
		}
		if end == n {
			answered, err := c.takeFastPath(p[:end])
			if err != nil {
				return 0, err
			}
			if answered {
				continue
			}
		}
		c.in.held = append(c.in.held, p[end:n]...)
		if end == 0 {
			return c.gatherHead(p)
		}
		return c.beginMessage(p[:end])
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
			return c.refuse(p, c.in.held, refuseHeadSize)
		case end > 0:
			copy(p, c.in.held[:end])
			c.in.held = append(c.in.held[:0], c.in.held[end:]...) // the rest moves to the front
			return c.beginMessage(p[:end])
		}
		now := time.Now()
		c.times.beginMessage(now)
		n, err := c.readSocket(p, now)
		c.in.held = append(c.in.held, p[:n]...)
		if n == 0 && err != nil {
			switch {
			case errors.Is(err, io.EOF):
				return c.refuse(p, c.in.held, refuseCut)
			case errors.Is(err, os.ErrDeadlineExceeded):
				return c.refuse(p, c.in.held, refuseSlow)
			}
			return 0, err
		}
	}
}

// beginMessage hands the head of a message to the library. What follows the head is held back: the body is for the
// handler, and the library never gets two messages at once.
func (c *Conn) beginMessage(head []byte) (int, error) {
	if !c.life.hand() {
		return 0, io.EOF
	}
	c.head = head // the library reads nothing more before it has answered
	c.in.left, c.in.chunks = max(c.in.scan.length, 0), chunkScan{}
	if c.in.scan.chunked {
		c.in.left = unknownLength
	}
	if c.in.left == 0 {
		c.times.endMessage()
	} else {
		c.times.beginMessage(time.Now())
	}
	return len(head), nil
}

// refuse ends the connection with the refusal bad. seen is the part of the message that has arrived.
func (c *Conn) refuse(p, seen []byte, bad *Refusal) (int, error) {
	if !c.life.hand() {
		return 0, io.EOF
	}
	c.refused = bad
	c.head = bytes.Clone(seen[:min(len(seen), c.gate.limits.HeaderBytes)])
	p[0] = 'X'
	return 1, nil
}

// readSocket reads what the peer sends. now may be a little old; deadlines then come as much earlier.
func (c *Conn) readSocket(p []byte, now time.Time) (int, error) {
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
func (c *Conn) Write(p []byte) (int, error) { return c.write(p, time.Now()) }

func (c *Conn) write(p []byte, now time.Time) (int, error) {
	if by, set := c.times.forWrite(now); set {
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
	_, _ = io.Copy(io.Discard, io.LimitReader(c.raw, lingerBytes))
}
