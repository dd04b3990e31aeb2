package api

import (
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// keptBody is the largest answer buffer, in bytes, that an idle connection keeps.
const keptBody = 4 << 10

// A conn is a gate connection with the API's own state. What resolve needs is kept per connection, so that it shares no
// memory with other cores and needs no pool.
type conn struct {
	*gate.Conn
	services Services
	outside  bool         // the peer of a gateway listener that may not ask
	door     catalog.Door // of the changes that it brings
	relayed  bool         // edges send over it what they were asked, and say through which door
	body     []byte       // of the last resolve: it is written out before the next request is read
	ids      web.IDRange
	shard    int // the metrics shard that the connection counts in
	asked    asked
	charge   web.BodyCharge // of the current request
	span     *trace.Span    // of the current request; nil: it is not traced
}

// asked is the resolver's answer that the fast path found for the current message before it left the message to the
// handler. The handler uses it instead of asking again.
type asked struct {
	answer *resolver.Answer    // nil: the fast path did not ask
	shown  *resolver.Published // the position before the question
	at     time.Time
}

// attach returns the function that makes the State of a listener's new connections.
func (s *Server) attach(services Services) func(*gate.Conn) any {
	return func(c *gate.Conn) any {
		return &conn{Conn: c, services: services, door: catalog.DoorAPI,
			outside: services == Gateway && !s.rooms.gateway.MayAsk(c.RemoteAddr()),
			charge:  s.bodies.Charge(), shard: s.metrics.nextShard()}
	}
}

// attachPipe is attach for a Pipe.
func (s *Server) attachPipe(p *Pipe, services Services) func(*gate.Conn) any {
	attach := s.attach(services)
	return func(g *gate.Conn) any {
		c := attach(g).(*conn)
		if c.relayed = p.name == clusterPipe; p.name == consolePipe {
			c.door = catalog.DoorConsole
		}
		return c
	}
}

// headerDoor is the header field in which an edge tells the authority that a request comes from its console. Of others it
// is not read.
const headerDoor = "X-Fingerpost-Door"

// doorOf returns the door of a request.
func (c *conn) doorOf(ctx *fasthttp.RequestCtx) catalog.Door {
	if c.relayed && string(ctx.Request.Header.Peek(headerDoor)) == string(catalog.DoorConsole) {
		return catalog.DoorConsole
	}
	return c.door
}

// connOf returns the request's connection. The HTTP library gets all its connections from a gate, see Serve.
func connOf(ctx *fasthttp.RequestCtx) *conn { return ctx.Conn().(*gate.Conn).State.(*conn) }
