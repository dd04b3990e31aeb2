package api

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver/catalog"
)

// headerReceived is called when a request's header is there and its body, if it has one, is not. Without a good key
// the body is not read: the handler answers 401 without it, and the connection is closed.
func (s *Server) headerReceived(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	length := h.ContentLength()
	if length == 0 || length == -2 {
		return config
	}
	service := Platform
	if isMailPath(string(targetPath(h.RequestURI()))) {
		service = Mail
	}
	switch _, failure := s.keys.check(h, service, time.Now()); {
	case failure != keyGood:
		h.SetContentLength(0)
		h.SetConnectionClose()
		h.Del(fasthttp.HeaderExpect)
	case length > s.admitted.limits.BodyBytes:
		h.Del(fasthttp.HeaderExpect) // no "100 Continue" for a body that is refused
	}
	return config
}

// readFailed answers for a request that could not be read. By then the library has forgotten what it knew of it; the
// connection has kept the head.
func (s *Server) readFailed(ctx *fasthttp.RequestCtx, err error) {
	c, _ := ctx.Conn().(*conn)
	var head []byte
	refused := (*catalog.Error)(nil)
	if c != nil {
		c.lingers.Store(true)
		head, refused = c.head, c.refused
	}
	ctx.Response.Reset()
	s.ids.set(&ctx.Response.Header, headValue(head, "x-request-id"), c)
	path := targetPath(headTarget(head))
	if refused == nil {
		refused = readFailure(err)
	}
	if refused == refuseBodySize {
		// The route's own failures come first (contract http.md 1.7).
		if early := s.routeFailure(ctx, head, path); early != nil {
			refused = early
		}
	}
	s.fail(ctx, string(path), refused)
	method, _, _ := bytes.Cut(head, []byte{' '})
	s.record(ctx, method, "", nil, 0)
}

// readFailure says what the library's error means to the caller.
func readFailure(err error) *catalog.Error {
	var small *fasthttp.ErrSmallBuffer
	var netErr net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return refuseBodySize
	case errors.As(err, &small):
		return refuseHeadSize
	case errors.Is(err, fasthttp.ErrTimeout), errors.As(err, &netErr) && netErr.Timeout():
		return refuseSlow
	}
	return refuseMalformed
}

// routeFailure is the 404 or 405 of a request whose body was refused, or nil.
func (s *Server) routeFailure(ctx *fasthttp.RequestCtx, head, path []byte) *catalog.Error {
	method, _, _ := bytes.Cut(head, []byte{' '})
	if allow, static := s.statics[string(path)]; static {
		if slices.Contains(strings.Split(allow, ", "), string(method)) {
			return nil
		}
		ctx.Response.Header.Set("Allow", allow)
		return refuseMethod
	}
	if handler, _ := s.router.Lookup(string(method), string(path), ctx); handler != nil {
		return nil
	}
	for _, rt := range routes() {
		if handler, _ := s.router.Lookup(rt.method, string(path), ctx); handler != nil {
			ctx.Response.Header.Set("Allow", allowed(routes(), rt.path))
			return refuseMethod
		}
	}
	return refusePath
}

// headTarget is the request target of a head, which may be cut or malformed.
func headTarget(head []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte{'\n'})
	_, rest, _ := bytes.Cut(line, []byte{' '})
	target, _, _ := bytes.Cut(rest, []byte{' '})
	return bytes.TrimSuffix(target, []byte{'\r'})
}

// targetPath is the path of a request target, which may have a scheme and a host in front.
func targetPath(target []byte) []byte {
	if _, rest, ok := bytes.Cut(target, []byte("://")); ok && len(target) > 0 && target[0] != '/' {
		slash := bytes.IndexByte(rest, '/')
		if slash < 0 {
			return []byte{'/'}
		}
		target = rest[slash:]
	}
	if end := bytes.IndexAny(target, "?#"); end >= 0 {
		target = target[:end]
	}
	return target
}

// headValue is the value of the first header line with the lower-case name, or nil.
func headValue(head []byte, name string) []byte {
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte{'\n'})
		key, value, ok := bytes.Cut(line, []byte{':'})
		if ok && foldEqual(key, []byte(name)) {
			return trimSpace(bytes.TrimSuffix(value, []byte{'\r'}))
		}
	}
	return nil
}
