package api

import (
	"errors"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/events"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const (
	eventsPath        = "/api/platform/events"
	contentEvents     = "text/event-stream" // UTF-8 by definition
	headerLastEventID = "Last-Event-ID"
)

// streamEvents answers GET /events with Server-Sent Events. It takes the connection out of the HTTP library's hands and
// gives it to package events.
func (s *Server) streamEvents(r *web.Request) error {
	after, resumes, err := s.lastEventID(&r.Ctx.Request.Header)
	if err != nil {
		return err
	}
	if err := r.Permit(); err != nil {
		return err
	}
	if err := s.streams.Room(r.Key.ID); err != nil {
		return err
	}
	h := &r.Ctx.Response.Header
	h.SetContentType(contentEvents)
	h.Set("X-Accel-Buffering", "no") // otherwise nginx holds events until it has 4 KiB of them
	if r.Ctx.IsHead() {
		web.HeadChunked(r.Ctx)
		return nil
	}
	c, keyID, id, begun := connOf(r.Ctx), r.Key.ID, web.RequestID(r.Ctx), r.Ctx.Time() // Ended must not hold the request
	stream := events.Stream{
		Conn: streamConn{c}, Key: r.Key, After: after, Resumes: resumes, RequestID: id,
		Head: streamHead(r.Ctx), Chunked: r.Ctx.Request.Header.IsHTTP11(),
		Ended: func(why events.Ending, sent int64) { s.access.stream(keyID, id, begun, why, sent) },
	}
	r.Ctx.HijackSetNoResponse(true)
	r.Ctx.Hijack(func(net.Conn) {
		c.body = nil // there are no more requests
		c.BeginStream(streamSendBuffer, max(3*s.o.Limits.Heartbeat, leastUnacked))
		s.streams.Start(stream)
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

// A streamConn is a conn without the gate's framing and without the deadlines of requests.
type streamConn struct{ *conn }

func (c streamConn) Read(b []byte) (int, error)  { return c.ReadStream(b) }
func (c streamConn) Write(b []byte) (int, error) { return c.WriteStream(b) }

// Close reads what the client still sends for a moment: a reset could overtake the end of the stream.
func (c streamConn) Close() error {
	c.Linger()
	return c.conn.Close()
}

// Abort implements events.Conn.
func (c streamConn) Abort() {
	c.conn.Abort()
	_ = c.conn.Close()
}

// renewKey returns the key as it is declared now, nil if it was revoked or replaced or may no longer read events.
func (s *Server) renewKey(was *resolver.Key) *resolver.Key {
	now := s.resolver.Keys().Lookup([]byte(was.ID))
	if now == nil || now.Hash != was.Hash || now.Allow&resolvePermissions == 0 {
		return nil
	}
	return now
}

// maxEventIDDigits is the length of the largest revision.
const maxEventIDDigits = 20

// lastEventID reads the header with which a client resumes: a revision, or a position of this epoch. A number that is
// too large and another epoch stand for a revision that the feed does not know, so the client gets a reset.
func (s *Server) lastEventID(h *fasthttp.RequestHeader) (after uint64, given bool, err error) {
	values := h.PeekAll(headerLastEventID)
	if len(values) > 1 {
		return 0, false, web.InvalidField(headerLastEventID, "must be given once")
	}
	if len(values) == 0 || len(values[0]) == 0 {
		return 0, false, nil
	}
	if p, err := catalog.ParsePosition(string(values[0])); err == nil {
		if p.Epoch != s.resolver.Position().Epoch {
			p.Generation = math.MaxUint64
		}
		return p.Generation, true, nil
	}
	after, err = strconv.ParseUint(string(values[0]), 10, 64) // out of range it is the largest uint64
	if err != nil && !errors.Is(err, strconv.ErrRange) || len(values[0]) > maxEventIDDigits {
		return 0, false, web.InvalidField(headerLastEventID, "must be the id of an event: a decimal number of up to 20 "+
			"digits, or a position, as in \"0123456789abcdef.42\"")
	}
	return after, true, nil
}
