package gate

import (
	"crypto/tls"
	"net/netip"
	"syscall"
	"time"
)

// Peer returns the network of the peer's address, invalid for a Unix socket.
func (c *Conn) Peer() netip.Addr { return c.peer }

// Secure reports whether the peer speaks TLS.
func (c *Conn) Secure() bool {
	_, secure := c.Conn.(*tls.Conn)
	return secure
}

// Head returns the current message's head as far as it arrived. It is valid until the next Read.
func (c *Conn) Head() []byte { return c.head }

// Refused returns what was wrong with the last message, nil if nothing was.
func (c *Conn) Refused() *Refusal { return c.refused }

// Linger makes Close read for a short time what the client still sends: a reset could overtake the last answer.
func (c *Conn) Linger() { c.lingers.Store(true) }

// hasInput reports whether bytes of the peer wait in the socket: on a busy machine its goroutine may not have read them yet.
func (c *Conn) hasInput() (has bool) {
	socket, is := c.raw.(syscall.Conn)
	if !is {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		n, _, perr := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		has = perr == nil && n > 0
	})
	return has && err == nil
}

// Abort cuts the socket. The goroutine that uses the connection then closes it.
func (c *Conn) Abort() { c.raw.Close() }

// BeginStream prepares a connection that carries no more messages. It drops the messages' memory and the State, limits the system's
// send buffer to sendBuffer bytes, and disconnects a peer that has not acknowledged sent data for unacked.
func (c *Conn) BeginStream(sendBuffer int, unacked time.Duration) {
	c.head, c.in, c.State = nil, reading{}, nil
	if b, ok := c.raw.(interface{ SetWriteBuffer(int) error }); ok {
		_ = b.SetWriteBuffer(sendBuffer) // if it fails, a client that does not read costs more
	}
	setUnackedTimeout(c.raw, unacked)
}

// ReadStream and WriteStream are Read and Write without framing and without the deadlines of messages.
func (c *Conn) ReadStream(p []byte) (int, error) { return c.Conn.Read(p) }

// WriteStream is described at ReadStream.
func (c *Conn) WriteStream(p []byte) (int, error) { return c.Conn.Write(p) }
