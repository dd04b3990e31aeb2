package api

import (
	"bytes"
	"errors"
	"net"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/resolver/catalog"
)

// readFailed answers a request that the library could not read. The library has dropped what it had parsed by then, so
// the method and the path come from the connection's copy of the head.
func (s *Server) readFailed(ctx *fasthttp.RequestCtx, err error) {
	c := connOf(ctx)
	var head []byte
	refused := (*catalog.Error)(nil)
	if c != nil {
		c.Linger()
		head = c.Head()
		if r := c.Refused(); r != nil {
			refused = refusedByGate(r)
		}
	}
	ctx.Response.Reset()
	s.ids.set(&ctx.Response.Header, gate.HeadValue(head, "x-request-id"), c)
	path := targetPath(headTarget(head))
	if refused == nil {
		refused = readFailure(err)
	}
	s.fail(ctx, string(path), refused)
	method := headMethod(head)
	ctx.Response.SkipBody = string(method) == fasthttp.MethodHead
	s.record(ctx, method, "", nil, 0)
}

// readFailure maps the library's read error to the error that the client gets.
func readFailure(err error) *catalog.Error {
	var small *fasthttp.ErrSmallBuffer
	var netErr net.Error
	switch {
	case errors.As(err, &small):
		return refusedByGate(gate.RefuseHeadSize)
	case errors.Is(err, fasthttp.ErrTimeout), errors.As(err, &netErr) && netErr.Timeout():
		return refusedByGate(gate.RefuseSlow)
	}
	return refusedByGate(gate.RefuseMalformed)
}

// headMethod returns the method of a head, which may be truncated or malformed.
func headMethod(head []byte) []byte {
	method, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte{' '})
	return method
}

// headTarget returns the request target of a head, which may be truncated or malformed.
func headTarget(head []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte{'\n'})
	_, rest, _ := bytes.Cut(line, []byte{' '})
	target, _, _ := bytes.Cut(rest, []byte{' '})
	return bytes.TrimSuffix(target, []byte{'\r'})
}

// targetPath returns the path of a request target, which may start with a scheme and a host.
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
