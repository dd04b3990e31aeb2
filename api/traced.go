package api

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

const headerTraceparent = "Traceparent"

// traceparent returns what the client says of the trace that the request belongs to. A bad value counts as none.
func traceparent(ctx *fasthttp.RequestCtx) (id trace.ID, ok bool) {
	values := ctx.Request.Header.PeekAll(headerTraceparent)
	if len(values) != 1 {
		return id, false
	}
	return trace.ParseParent(values[0])
}

// beginSpan begins the span of a sampled request whose key, token or listener is known to be good. key is nil for the
// last two.
func (s *Server) beginSpan(ctx *fasthttp.RequestCtx, c *conn, route string, key *resolver.Key) {
	if s.o.Trace == nil {
		return
	}
	id, _ := traceparent(ctx)
	method := methodLabel(ctx.Method())
	if method == "other" {
		method = "HTTP"
	}
	if c.span = s.o.Trace.Begin(id, trace.Server, strings.TrimSpace(method+" "+route), ctx.Time()); c.span == nil {
		return
	}
	c.span.Set("http.request.method", method)
	c.span.Set("http.route", route)
	if key != nil {
		c.span.Set("fingerpost.key", key.Name)
	}
}

// endSpan ends the span of the request.
func (s *Server) endSpan(ctx *fasthttp.RequestCtx, c *conn) {
	if c.span == nil {
		return
	}
	status := ctx.Response.StatusCode()
	c.span.SetInt("http.response.status_code", int64(status))
	c.span.SetInt("fingerpost.generation", int64(s.resolver.Generation()))
	if slug := s.projectOf(ctx); slug != "" {
		c.span.Set("fingerpost.project", slug)
	}
	if status >= fasthttp.StatusInternalServerError {
		c.span.Fail()
	}
	c.span.End()
	c.span = nil
}

// noteFailure names in the request's span why it was answered with a server's fault.
func noteFailure(ctx *fasthttp.RequestCtx, e *catalog.Error) {
	if ctx.Response.StatusCode() >= fasthttp.StatusInternalServerError {
		connOf(ctx).span.Set("error.type", string(e.Code))
	}
}

// projectOf returns the slug of the project that the request's path names, "" for none.
func (s *Server) projectOf(ctx *fasthttp.RequestCtx) string {
	for _, name := range []string{"id", "projectId"} {
		text, has := ctx.UserValue(name).(string)
		if !has {
			continue
		}
		if id, err := strconv.ParseInt(text, 10, web.IDBits); err == nil {
			if p, err := s.resolver.ProjectByID(id); err == nil {
				return p.Slug
			}
		}
	}
	return ""
}

// traced is a resolver that shows in the span of a request what came of a question.
type traced struct{ *resolver.Resolver }

// Resolve implements gateway.Live. It does not ask again what the fast path has asked for the same request.
func (t traced) Resolve(ctx *fasthttp.RequestCtx, domain []byte, form resolver.Form) (*resolver.Answer, error) {
	if found := connOf(ctx).asked.answer; found != nil {
		return found, nil
	}
	span := connOf(ctx).span
	if span == nil {
		return t.Resolver.Resolve(domain, form)
	}
	answer, err := t.ResolveTraced(span, domain, form)
	if err == nil && answer.Slug != "" {
		span.Set("fingerpost.project", answer.Slug)
	}
	return answer, err
}
