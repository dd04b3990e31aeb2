package api

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/web"
)

// readFailed answers a request that the gate refused or the library could not read. The library has dropped what it had
// parsed by then, so the method and the path come from the head that the connection keeps.
func (s *Server) readFailed(ctx *fasthttp.RequestCtx, _ error) {
	c := connOf(ctx)
	c.Linger()
	refused := c.Refused()
	if refused == nil {
		refused = gate.RefuseMalformed // the gate reports all that is too large or too slow
	}
	method, path := requestLine(c.Head())
	ctx.Response.Reset()
	ctx.Response.Header.SetCanonical(web.HeaderRequestID, s.ids.Append(nil, headValue(c.Head(), "x-request-id"), &c.ids))
	answerError(ctx, string(path), web.RefusedByGate(refused))
	ctx.Response.SkipBody = string(method) == fasthttp.MethodHead
	label := methodLabel(method)
	s.metrics.observe("", label, ctx.Response.StatusCode(), 0)
	s.access.request(ctx, label, "", nil, 0)
}

// requestLine returns the method and the path of a head, which may be truncated or malformed. The target may start with
// a scheme and a host.
func requestLine(head []byte) (method, path []byte) {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte{'\n'})
	method, rest, _ := bytes.Cut(line, []byte{' '})
	target, _, _ := bytes.Cut(rest, []byte{' '})
	target = bytes.TrimSuffix(target, []byte{'\r'})
	if _, rest, ok := bytes.Cut(target, []byte("://")); ok && target[0] != '/' {
		slash := bytes.IndexByte(rest, '/')
		if slash < 0 {
			return method, []byte{'/'}
		}
		target = rest[slash:]
	}
	if end := bytes.IndexAny(target, "?#"); end >= 0 {
		target = target[:end]
	}
	return method, target
}

// headValue returns the value of the first header line with this lower-case name, nil if there is none.
func headValue(head []byte, name string) []byte {
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte{'\n'})
		key, value, ok := bytes.Cut(line, []byte{':'})
		if ok && string(bytes.ToLower(key)) == name {
			return bytes.Trim(bytes.TrimSuffix(value, []byte{'\r'}), " \t")
		}
	}
	return nil
}
