package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/platform"
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// An Edge is this node, where it is an edge: it carries requests to the authority of its cluster.
type Edge interface {
	// Forward sends a request of a key in its wire form once, and returns the answer in its wire form. Its errors are for clients:
	// UNAVAILABLE if the authority has not got the request, OUTCOME_UNKNOWN if nobody knows what came of it. The answer to
	// a write comes once this node has applied it.
	Forward(ctx context.Context, key string, request []byte) (answer []byte, err error)
	// State says in a sentence how this edge is, for those who cannot ask the authority.
	State() string
	// Age returns how long before now the authority was last heard, and whether answers say so.
	Age(now time.Time) (age time.Duration, shown bool)
}

// forwarded reports whether an edge sends a call to the authority: writes, sends, and some reads.
func (rt *route) forwarded(r *web.Request) bool {
	if rt.Allow == catalog.MayWrite || rt.Allow == catalog.MayMail || rt.Marks&web.ByAuthority != 0 {
		return true
	}
	if len(rt.ByAuthorityWith) == 0 {
		return false
	}
	q := web.ParseQuery(r.Ctx.URI().QueryString(), rt.ByAuthorityWith...)
	return len(q.Values) > 0
}

// forward has the authority answer a request whose key, or secret, is good here. The authority checks everything again.
func (s *Server) forward(r *web.Request) error {
	request, err := s.wireForm(r)
	if err != nil {
		return err
	}
	ctx, span := trace.Start(r.Context(), "cluster.forward")
	answer, err := s.o.Cluster.Edge.Forward(ctx, r.PaidBy(), request)
	span.Calls().EndWith(err)
	if err != nil {
		if e, is := errors.AsType[*catalog.Error](err); is && r.Path == platform.EdgesPath {
			told := *e
			told.Problems = append(told.Problems, catalog.Problem{Path: "edge", Message: s.o.Cluster.Edge.State()})
			return &told
		}
		return err
	}
	return s.takeAnswer(r.Ctx, answer)
}

// takeAnswer answers with what the authority has answered.
func (s *Server) takeAnswer(ctx *fasthttp.RequestCtx, answer []byte) error {
	response, id := &ctx.Response, web.RequestID(ctx)
	response.Reset()
	response.SkipBody = ctx.IsHead()
	if err := response.Read(bufio.NewReader(bytes.NewReader(answer))); err != nil {
		response.Reset()
		response.Header.SetCanonical(web.HeaderRequestID, []byte(id))
		return fmt.Errorf("read the authority's answer: %w", err)
	}
	response.Header.ResetConnectionClose()
	response.Header.Del(fasthttp.HeaderConnection)
	return nil
}

// hopByHop are header fields of one connection. The body's length is known by now.
var hopByHop = []string{
	fasthttp.HeaderConnection, "Keep-Alive", fasthttp.HeaderTransferEncoding, fasthttp.HeaderTE, fasthttp.HeaderTrailer,
	fasthttp.HeaderUpgrade,
	fasthttp.HeaderExpect, fasthttp.HeaderContentLength, "Proxy-Connection", "X-Min-Position",
}

// wireForm is the request as it goes to the authority, with this node's request id.
func (s *Server) wireForm(r *web.Request) ([]byte, error) {
	var body []byte
	if !r.Ctx.IsGet() && !r.Ctx.IsHead() {
		var err error
		if body, err = r.BodyText(); err != nil {
			return nil, err
		}
	}
	var to fasthttp.Request
	r.Ctx.Request.Header.CopyTo(&to.Header)
	for _, name := range hopByHop {
		to.Header.Del(name)
	}
	if r.Span != nil { // the cluster's message has the one that follows
		to.Header.Del(headerTraceparent)
	}
	to.Header.Del(headerDoor)
	if r.Door == catalog.DoorConsole {
		to.Header.Set(headerDoor, string(r.Door))
	}
	to.Header.SetCanonical(web.HeaderRequestID, []byte(web.RequestID(r.Ctx)))
	to.SetBodyRaw(body)
	to.SetConnectionClose()
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	if err := to.Write(w); err != nil {
		return nil, fmt.Errorf("write the request for the authority: %w", err)
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
