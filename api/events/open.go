package events

import (
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

const (
	path              = "/api/platform/events"
	contentType       = "text/event-stream" // UTF-8 by definition
	headerLastEventID = "Last-Event-ID"

	mayRead = catalog.MayResolve | catalog.MayRead
)

// Routes lists the one call.
func (s *Streams) Routes() []web.Route {
	return []web.Route{web.Call("GET", path, mayRead, 0, s.open)}
}

// open answers GET /events with Server-Sent Events. It takes the connection out of the HTTP library's hands.
func (s *Streams) open(r *web.Request) error {
	after, err := s.lastEventID(&r.Ctx.Request.Header)
	if err != nil {
		return err
	}
	if err := r.Permit(); err != nil {
		return err
	}
	if err := s.room(r.Key.ID); err != nil {
		return err
	}
	h := &r.Ctx.Response.Header
	h.SetContentType(contentType)
	h.Set("X-Accel-Buffering", "no") // otherwise nginx holds events until it has 4 KiB of them
	if r.Ctx.IsHead() {
		web.HeadChunked(r.Ctx)
		return nil
	}
	st := newStream(s, r, after)
	r.Ctx.HijackSetNoResponse(true)
	r.Ctx.Hijack(func(net.Conn) {
		st.conn.BeginStream(streamSendBuffer, max(3*s.Heartbeat, leastUnacked))
		s.start(st)
	})
	return nil
}

// streamHead returns the response's head with the fields that the handler has set.
func streamHead(ctx *fasthttp.RequestCtx) []byte {
	b := append(make([]byte, 0, 320), "HTTP/1.1 200 OK\r\nDate: "...)
	b = fasthttp.AppendHTTPDate(b, ctx.Time())
	for name, value := range ctx.Response.Header.All() {
		switch string(name) {
		case "Content-Length", "Date", "Connection":
			continue
		}
		b = append(append(append(append(b, "\r\n"...), name...), ": "...), value...)
	}
	b = append(b, "\r\nConnection: close"...)
	if ctx.Request.Header.IsHTTP11() {
		b = append(b, "\r\nTransfer-Encoding: chunked"...)
	}
	return append(b, "\r\n\r\n"...)
}

const (
	// streamSendBuffer bounds the kernel's send buffer, in bytes: its default is megabytes per client that does not read.
	streamSendBuffer = 64 << 10
	// leastUnacked is the shortest time after which a peer that acknowledges nothing is disconnected.
	leastUnacked = 30 * time.Second
)

// A streamConn is a connection without the gate's framing and without the deadlines of requests.
type streamConn struct{ *gate.Conn }

func (c streamConn) Read(b []byte) (int, error)  { return c.ReadStream(b) }
func (c streamConn) Write(b []byte) (int, error) { return c.WriteStream(b) }

// end ends the connection in good order: what has been written arrives. It reads what the client still sends for a
// moment, since a reset could overtake the end of the stream.
func (c streamConn) end() {
	c.Linger()
	_ = c.Close()
}

// cut drops what is on its way. It may follow end.
func (c streamConn) cut() {
	c.Abort()
	_ = c.Close()
}

// maxEventIDDigits is the length of the largest revision.
const maxEventIDDigits = 20

// A resumption is where a client resumes.
type resumption struct {
	catalog.Position
	given bool
	// awaited says that the node may still reach the position: it came from another node of the cluster. A number alone
	// is one of this node.
	awaited bool
}

// lastEventID reads the header with which a client resumes: a position, or a revision of the present epoch.
func (s *Streams) lastEventID(h *fasthttp.RequestHeader) (at resumption, err error) {
	values := h.PeekAll(headerLastEventID)
	if len(values) > 1 {
		return at, web.InvalidField(headerLastEventID, "must be given once")
	}
	if len(values) == 0 || len(values[0]) == 0 {
		return at, nil
	}
	if p, err := catalog.ParsePosition(string(values[0])); err == nil {
		return resumption{Position: p, given: true, awaited: true}, nil
	}
	after, err := strconv.ParseUint(string(values[0]), 10, 64) // out of range it is the largest uint64
	if err != nil && !errors.Is(err, strconv.ErrRange) || len(values[0]) > maxEventIDDigits {
		return at, web.InvalidField(headerLastEventID, "must be the id of an event: a position, as in "+
			"\"0123456789abcdef.42\", or a decimal number of up to 20 digits")
	}
	return resumption{Position: catalog.Position{Epoch: s.feed.Position().Epoch, Generation: after}, given: true}, nil
}
