package api

import (
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/resolver"
)

// keptBody is the largest buffer for answers that an idle connection keeps.
const keptBody = 4 << 10

// A conn is a gate's connection with what the API keeps for it.
type conn struct {
	*gate.Conn
	services Services
	hot      hotConn
}

// hotConn is what resolve keeps per connection, so that it shares no memory with other cores and needs no pool.
type hotConn struct {
	body []byte // of the last answer: it is written out before the next request is read
	ids  idRange
	lane int // which of the metrics' lanes the connection counts in

	asked asked
}

// asked is the resolver's answer to the present message where the fast path had to leave the message to the handler,
// which then does not ask again.
type asked struct {
	answer *resolver.Answer // nil: the fast path did not ask
	at     time.Time
}

// attach returns what a listener's new connections keep in their State.
func (s *Server) attach(services Services) func(*gate.Conn) any {
	return func(c *gate.Conn) any {
		return &conn{Conn: c, services: services, hot: hotConn{lane: int(s.admitted.Add(1) % lanes)}}
	}
}

// connOf is the request's connection, nil where it is not one of a gate's.
func connOf(ctx *fasthttp.RequestCtx) *conn {
	gc, ok := ctx.Conn().(*gate.Conn)
	if !ok {
		return nil
	}
	c, _ := gc.State.(*conn)
	return c
}
