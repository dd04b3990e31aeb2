package api

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/console"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// An accessLog has a line for each request, but for most of the anonymous ones that fail. Safe for concurrent use.
type accessLog struct {
	*slog.Logger
	anonymous logLimit
}

// request adds a finished request. pattern is the route's path, "" if no route matched: the request's own path is text
// of the client, and belongs neither here nor in the metrics.
func (l *accessLog) request(ctx *fasthttp.RequestCtx, method, pattern string, key *resolver.Key, took time.Duration) {
	var more []slog.Attr
	if key != nil {
		more = append(more, slog.String("key", key.ID))
		if web.IsMailPath(pattern) { // the key was good, so the name is well formed
			more = append(more, slog.String("service", web.ServiceName(ctx)))
		}
	}
	l.add(ctx, method, pattern, took, more)
}

// visit adds a finished request of the console: the pattern of the page, and who has asked for it.
func (l *accessLog) visit(ctx *fasthttp.RequestCtx, method string, v *console.Visit, took time.Duration) {
	var more []slog.Attr
	if v.Key.ID != "" {
		more = append(more, slog.String("key", v.Key.ID), slog.String("key_name", v.Key.Name))
		if v.Person != "" {
			more = append(more, slog.String("person", v.Person))
		}
	}
	l.add(ctx, method, v.Page, took, more)
}

// add writes a line, unless it is one of many about requests without a good key. more begins with the key, if there is
// one.
func (l *accessLog) add(ctx *fasthttp.RequestCtx, method, pattern string, took time.Duration, more []slog.Attr) {
	status := ctx.Response.StatusCode()
	if more == nil && status >= 400 && status < 500 && !l.anonymous.allow(time.Now()) {
		return
	}
	attrs := append([]slog.Attr{
		slog.String("method", method),
		slog.String("path", pattern),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000), // text and JSON alike
		slog.String("request_id", web.RequestID(ctx)),
	}, more...)
	if id, ok := traceparent(ctx); ok {
		attrs = append(attrs, slog.String("trace_id", id.TraceID()))
	}
	if span := connOf(ctx).span; span != nil {
		attrs = append(attrs, slog.String("span_id", span.ID().SpanID()))
	}
	l.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
}

// methodLabel returns the method, or "other": a client may invent methods, and metrics must stay few.
func methodLabel(name []byte) string {
	switch method := string(name); method {
	case fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodPut, fasthttp.MethodDelete,
		fasthttp.MethodOptions:
		return method
	}
	return "other"
}

// shown returns the error that the client gets for err. It logs a cause that the client must not see.
func (s *Server) shown(ctx *fasthttp.RequestCtx, err error) *catalog.Error {
	e, hidden := web.Visible(err)
	if hidden {
		s.o.Logger.Error("request failed", "request_id", web.RequestID(ctx), "error", err)
	}
	return e
}

// panicked logs a handler's panic and answers 500.
func (s *Server) panicked(ctx *fasthttp.RequestCtx, cause any) {
	id := web.RequestID(ctx)
	s.o.Logger.Error("handler panicked", "request_id", id, "cause", cause, "stack", string(debug.Stack()))
	ctx.Response.Reset()
	ctx.Response.Header.SetCanonical(web.HeaderRequestID, []byte(id))
	ctx.Response.SetConnectionClose()
	answerError(ctx, string(ctx.URI().PathOriginal()), web.RefuseInternal)
	s.finish(ctx, "", nil, nil)
}
