package gate

import (
	"errors"
	"io"
	"os"
)

// skippedBody is the longest body, in bytes, that is read and dropped after an answer that did not need it. If the body
// is longer, the connection is closed instead.
const skippedBody = 64 << 10

// bodyPiece is how much of a chunked body is read at once, in bytes.
const bodyPiece = 4 << 10

var continueLine = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// A bodyCharge is what a connection's current request has charged to the budget.
type bodyCharge struct {
	budget Budget
	key    string
	bytes  int64
}

func (b *bodyCharge) add(n int64) error {
	if b.budget == nil {
		return nil
	}
	err := b.budget.Take(b.key, n)
	if err == nil {
		b.bytes += n
	}
	return err
}

// release returns the charge. It may be called more than once.
func (b *bodyCharge) release() {
	if b.bytes > 0 {
		b.budget.Give(b.key, b.bytes)
	}
	*b = bodyCharge{}
}

// ChargeBody makes the current request's body count for the key.
func (c *Conn) ChargeBody(budget Budget, key string) { c.charge = bodyCharge{budget: budget, key: key} }

// ReleaseBody ends the charge once the body is no longer in memory. It may be called more than once.
func (c *Conn) ReleaseBody() { c.charge.release() }

// ReadBody reads the current message's body. Its error is a *Refusal or the budget's.
func (c *Conn) ReadBody() ([]byte, error) {
	length, limit := c.in.scan.length, int64(c.gate.limits.BodyBytes)
	switch {
	case length > limit:
		return nil, refuseBodySize
	case !c.unfinished():
		return nil, nil
	}
	if err := c.charge.add(max(length, 0)); err != nil {
		return nil, err
	}
	if c.expectsContinue() && len(c.in.held) == 0 {
		if _, err := c.Write(continueLine); err != nil {
			return nil, refuseCut // the client is gone
		}
	}
	if c.in.coded {
		return c.readChunks(limit)
	}
	body := make([]byte, length)
	for done := 0; done < len(body); {
		n, err := c.take(body[done:])
		if done += n; n == 0 && err != nil {
			return nil, cutBody(err)
		}
	}
	c.endMessage()
	return body, nil
}

// readChunks reads and decodes a chunked body.
func (c *Conn) readChunks(limit int64) ([]byte, error) {
	var body []byte
	piece := make([]byte, bodyPiece)
	for {
		n, err := c.take(piece)
		if n == 0 && err != nil {
			return nil, cutBody(err)
		}
		had := len(body)
		read, done, bad := c.in.chunks.feed(piece[:n], &body)
		switch {
		case bad != nil:
			return nil, bad
		case int64(len(body))+c.in.chunks.announced() > limit:
			return nil, refuseBodySize
		}
		if err := c.charge.add(int64(len(body) - had)); err != nil {
			return nil, err
		}
		if done {
			c.holdBefore(piece[read:n])
			c.endMessage()
			return body, nil
		}
	}
}

// cutBody returns the Refusal for a read error within a body.
func cutBody(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return RefuseSlow
	}
	return refuseCut
}

func (c *Conn) expectsContinue() bool {
	return foldEqual(HeadValue(c.head, "expect"), []byte("100-continue"))
}

// SettleBody decides whether the connection can carry another message after an answer to one whose body was not read. A
// body that has arrived already is dropped now, and a short one that follows a success is dropped by the next read. In
// all other cases the connection ends: the client may have stopped sending, or may send for a long time.
func (c *Conn) SettleBody(succeeded bool) (goesOn bool) {
	switch {
	case !c.unfinished():
		return true
	case c.expectsContinue():
		return false
	case !c.in.coded && c.in.left <= int64(len(c.in.held)):
		c.in.held = c.in.held[c.in.left:]
		c.endMessage()
		return true
	}
	return succeeded && c.in.left <= skippedBody
}

// skipBody reads the rest of an answered message and drops it. It fails like a client that has hung up, because there
// is nothing more to answer.
func (c *Conn) skipBody() error {
	piece := make([]byte, bodyPiece)
	for skipped := 0; skipped <= 2*skippedBody; {
		most := int64(len(piece))
		if !c.in.coded {
			most = min(most, c.in.left)
		}
		n, err := c.take(piece[:most])
		if n == 0 && err != nil {
			break
		}
		skipped += n
		if c.in.coded {
			read, done, bad := c.in.chunks.feed(piece[:n], nil)
			if bad != nil {
				break
			}
			if done {
				c.holdBefore(piece[read:n])
				c.endMessage()
				return nil
			}
			continue
		}
		if c.in.left -= int64(n); c.in.left == 0 {
			c.endMessage()
			return nil
		}
	}
	c.lingers.Store(true)
	return io.EOF
}
