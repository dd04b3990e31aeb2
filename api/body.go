package api

import (
	"errors"
	"io"
	"os"
	"sync"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver/catalog"
)

// The HTTP library never sees a request body: headerReceived tells it that there is none, and a handler that needs the
// body reads it from the connection, once route, key, permission and path are known to be good. All that is wrong with
// those is answered without the body (api/README.md, Errors and Keys).

// skippedBody is the longest body that is read and dropped after an answer that did not need it; behind a longer one
// the connection is closed.
const skippedBody = 64 << 10

// bodyPiece is how much of a chunked body is read at once, in bytes.
const bodyPiece = 4 << 10

var (
	continueLine = []byte("HTTP/1.1 100 Continue\r\n\r\n")

	refuseBodies    = &refusal{Code: catalog.CodeUnavailable, Message: "too many request bodies are being read at this moment; try again later"}
	refuseKeyBodies = &refusal{Code: catalog.CodeUnavailable, Message: "too many request bodies of this key are being read at this moment; try again later"}
)

// A bodyBudget counts the request bodies that the server holds in memory, in bytes. Safe for concurrent use.
type bodyBudget struct {
	total, perKey int64

	mu   sync.Mutex // guards what follows
	used int64
	keys map[string]int64 // by the key's id; no entry is 0
}

func newBodyBudget(l Limits) *bodyBudget {
	return &bodyBudget{total: l.Bodies, perKey: l.BodiesPerKey, keys: map[string]int64{}}
}

// take charges n bytes to the key, or reports why not.
func (b *bodyBudget) take(key string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.keys[key]+n > b.perKey:
		return refuseKeyBodies
	case b.used+n > b.total:
		return refuseBodies
	}
	b.used += n
	b.keys[key] += n
	return nil
}

// give takes a charge back.
func (b *bodyBudget) give(key string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.keys[key] -= n; b.keys[key] == 0 {
		delete(b.keys, key)
	}
}

// A bodyCharge is what one connection's present request has taken of the budget.
type bodyCharge struct {
	budget *bodyBudget
	key    string
	bytes  int64
}

func (b *bodyCharge) add(n int64) error {
	if b.budget == nil {
		return nil
	}
	err := b.budget.take(b.key, n)
	if err == nil {
		b.bytes += n
	}
	return err
}

// release gives the charge back. It may be called more than once.
func (b *bodyCharge) release() {
	if b.bytes > 0 {
		b.budget.give(b.key, b.bytes)
	}
	*b = bodyCharge{}
}

// headerReceived is called when the library has read a request's header. It hides the body from the library.
func (s *Server) headerReceived(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	if length := h.ContentLength(); length != 0 && length != -2 { // -2: there is none
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect)
	}
	return config
}

// requestBody reads the request's body.
func requestBody(ctx *fasthttp.RequestCtx) ([]byte, error) {
	c, _ := ctx.Conn().(*conn)
	if c == nil {
		return ctx.Request.Body(), nil
	}
	return c.readBody()
}

// dropBody tells that the request's body is not in memory any more: a handler that waits for another server has no
// right to the budget meanwhile.
func (r *request) dropBody() {
	if c, _ := r.ctx.Conn().(*conn); c != nil {
		c.charge.release()
	}
}

// readBody reads the present message's body.
func (c *conn) readBody() ([]byte, error) {
	length, limit := c.in.scan.length, int64(c.admitted.limits.BodyBytes)
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
func (c *conn) readChunks(limit int64) ([]byte, error) {
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

// cutBody is what a read error within a body means to the caller.
func cutBody(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuseSlow
	}
	return refuseCut
}

func (c *conn) expectsContinue() bool {
	return foldEqual(headValue(c.head, "expect"), []byte("100-continue"))
}

// settleBody decides, after an answer to a message whose body was not read, whether the connection can go on. A body that
// has come already is dropped now, and a short one that follows a success with the next read. In all other cases the
// client may have stopped sending, or may send for long.
func (c *conn) settleBody(succeeded bool) (goesOn bool) {
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

// skipBody reads the rest of an answered message and drops it. It fails as a client that has hung up does: there is
// nothing more to answer.
func (c *conn) skipBody() error {
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
