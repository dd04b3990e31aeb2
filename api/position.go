package api

import (
	"context"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

var (
	headerGeneration  = []byte("X-Config-Generation")
	headerPosition    = []byte("X-Config-Position")
	headerAge         = []byte("X-Config-Age")
	headerMinPosition = []byte("X-Min-Position")
)

// maxPositionWait is how long a request with X-Min-Position waits for the position.
const maxPositionWait = 2 * time.Second

// showPosition says in the header which state of the files the answer is at least as new as (api/README.md, Positions).
// For a read, that is the position before it.
func (s *Server) showPosition(ctx *fasthttp.RequestCtx, at *resolver.Published) {
	h := &ctx.Response.Header
	var buf [40]byte
	h.SetCanonical(headerGeneration, strconv.AppendUint(buf[:0], at.Generation, 10))
	h.SetCanonical(headerPosition, append(buf[:0], at.Text...))
	if s.o.Cluster.Edge == nil {
		return
	}
	if age, shown := s.o.Cluster.Edge.Age(ctx.Time()); shown {
		h.SetCanonical(headerAge, strconv.AppendInt(buf[:0], int64(age/time.Second), 10))
	}
}

// appendPosition is showPosition for the fast path.
func (s *Server) appendPosition(dst []byte, at *resolver.Published, now time.Time) []byte {
	dst = append(dst, "\r\nX-Config-Generation: "...)
	dst = strconv.AppendUint(dst, at.Generation, 10)
	dst = append(dst, "\r\nX-Config-Position: "...)
	dst = append(dst, at.Text...)
	if s.o.Cluster.Edge == nil {
		return dst
	}
	if age, shown := s.o.Cluster.Edge.Age(now); shown {
		dst = append(dst, "\r\nX-Config-Age: "...)
		dst = strconv.AppendInt(dst, int64(age/time.Second), 10)
	}
	return dst
}

// awaitPosition waits until this node has the position that the request wants to read from, if it names one.
func (s *Server) awaitPosition(ctx *fasthttp.RequestCtx) error {
	value := ctx.Request.Header.PeekCanonical(headerMinPosition)
	if value == nil {
		return nil
	}
	want, err := catalog.ParsePosition(string(value))
	if n := len(ctx.Request.Header.PeekAll(string(headerMinPosition))); err != nil || n != 1 {
		var problems catalog.Problems
		if err == nil {
			problems.Addf(string(headerMinPosition), "must be there once, not %d times", n)
		} else {
			problems.Addf(string(headerMinPosition), "%v", err)
		}
		return web.Invalid(problems...)
	}
	wait, cancel := context.WithTimeout(context.Background(), maxPositionWait)
	defer cancel()
	return s.resolver.WaitPosition(wait, want)
}
