package gate

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

const (
	// skippedBody is the longest body, in bytes, that is read and dropped after an answer that did not need it. If the
	// body is longer, the connection is closed instead.
	skippedBody = 64 << 10
	// bodyPiece is how much of a body is read at once, in bytes.
	bodyPiece = 4 << 10
	// unknownLength is the length of what is left of a chunked body.
	unknownLength = -1
)

var continueLine = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// ReadBody reads the current message's body. It calls charge with the number of bytes that it keeps in memory: before
// it reads a body of known length, and after each part of a chunked one. The error is a *Refusal or charge's.
func (c *Conn) ReadBody(charge func(n int64) error) ([]byte, error) {
	length, limit := c.in.scan.length, int64(c.gate.limits.BodyBytes)
	switch {
	case length > limit:
		return nil, refuseBodySize
	case c.in.left == 0:
		return nil, nil
	}
	if err := charge(max(length, 0)); err != nil {
		return nil, err
	}
	if c.in.scan.expects && len(c.in.held) == 0 {
		if _, err := c.Write(continueLine); err != nil {
			return nil, refuseCut // the client is gone
		}
	}
	body := make([]byte, 0, max(length, 0))
	for c.in.left != 0 {
		had := len(body)
		if _, err := c.readPart(&body); err != nil {
			return nil, err
		}
		if length >= 0 {
			continue
		}
		if int64(len(body))+c.in.chunks.announced() > limit {
			return nil, refuseBodySize
		}
		if err := charge(int64(len(body) - had)); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// HasBody reports whether the request has a body that was not read yet.
func (c *Conn) HasBody() bool { return c.in.left != 0 }

// readPart takes what has arrived of the current body, n bytes, and waits if nothing has. It appends the data to data,
// unless that is nil. The error is a *Refusal.
func (c *Conn) readPart(data *[]byte) (n int, err error) {
	if len(c.in.held) == 0 {
		c.in.held = slices.Grow(c.in.held, bodyPiece)[:bodyPiece]
		n, err = c.readSocket(c.in.held, time.Now())
		c.in.held = c.in.held[:n]
		switch {
		case n > 0:
		case errors.Is(err, os.ErrDeadlineExceeded):
			return 0, refuseSlow
		case err != nil:
			return 0, refuseCut
		}
	}
	if c.in.left == unknownLength {
		var done bool
		var bad *Refusal
		if n, done, bad = c.in.chunks.feed(c.in.held, data); bad != nil {
			return 0, bad
		}
		if done {
			c.in.left = 0
		}
	} else {
		n = int(min(c.in.left, int64(len(c.in.held))))
		c.in.left -= int64(n)
		if data != nil {
			*data = append(*data, c.in.held[:n]...)
		}
	}
	c.in.held = append(c.in.held[:0], c.in.held[n:]...) // the rest moves to the front
	if c.in.left == 0 {
		c.times.endMessage()
	}
	return n, nil
}

// SettleBody decides whether the connection can carry another message after an answer to one whose body was not read. A
// body that has arrived already is dropped now, and a short one that follows a success is dropped by the next read. In
// all other cases the connection ends: the client may have stopped sending, or may send for a long time.
func (c *Conn) SettleBody(succeeded bool) (goesOn bool) {
	switch left := c.in.left; {
	case left == 0:
		return true
	case c.in.scan.expects:
		return false
	case left != unknownLength && left <= int64(len(c.in.held)):
		_, err := c.readPart(nil)
		return err == nil
	default:
		return succeeded && left <= skippedBody
	}
}

// skipBody reads the rest of an answered message and drops it. It fails like a client that has hung up, because there
// is nothing more to answer.
func (c *Conn) skipBody() error {
	for skipped := 0; c.in.left != 0; {
		n, err := c.readPart(nil)
		if skipped += n; err != nil || skipped > 2*skippedBody {
			c.lingers.Store(true)
			return io.EOF
		}
	}
	return nil
}
