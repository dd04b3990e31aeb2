package api

import (
	"bytes"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/gateway"
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

// The paths of a gateway listener. Its address is the credential: it needs no key.
const (
	listenerCheckPath = gate.CheckPath
	listenerAskPath   = "/ask"
)

var (
	refusePeer = &catalog.Error{Code: catalog.CodeForbidden,
		Message: "this address may not ask here: serve --gate-allow CIDR lets it in"}
	refuseAskMethod = &catalog.Error{Code: web.CodeMethodNotAllowed, Message: "ask takes GET and HEAD"}
)

// mayAsk reports whether a peer of a gateway listener gets answers: this machine, and the networks of the operator.
func (s *Server) mayAsk(peer net.Addr) bool {
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return true // a Unix socket has permissions
	}
	addr, _ := netip.AddrFromSlice(tcp.IP)
	addr = addr.Unmap()
	for _, network := range s.o.GateAllow {
		if network.Contains(addr) {
			return true
		}
	}
	return addr.IsLoopback()
}

// answerGateway answers a request on a gateway listener.
func (s *Server) answerGateway(ctx *fasthttp.RequestCtx, c *conn, now time.Time) {
	path := ctx.URI().PathOriginal()
	rest, isCheck := bytes.CutPrefix(path, []byte(listenerCheckPath))
	pattern, err := "", error(web.RefusePath)
	switch {
	case c.outside:
		ctx.Response.SetConnectionClose()
		err = refusePeer
	case isCheck && (len(rest) == 0 || rest[0] == '/' || rest[0] == ';'):
		s.gate.Welcome(c.Conn)
		pattern, err = listenerCheckPath, s.listenerCheck(ctx, rest)
	case string(path) == listenerAskPath:
		s.gate.Welcome(c.Conn)
		pattern, err = listenerAskPath, s.listenerAsk(ctx)
	}
	passed := pattern == listenerCheckPath && err == nil && ctx.IsGet() && ctx.Response.StatusCode() == http.StatusOK
	if passed && !s.o.AccessLogResolve {
		s.metrics.checked[c.shard].observe(time.Since(now))
		return
	}
	s.finish(ctx, pattern, nil, err)
}

// listenerCheck answers every method: some gateways ask with that of their client.
func (s *Server) listenerCheck(ctx *fasthttp.RequestCtx, rest []byte) error {
	read := gateway.CheckQuery
	if len(rest) > 0 {
		read = func(ctx *fasthttp.RequestCtx) (gateway.Query, error) { return gateway.PrefixQuery(ctx, rest) }
	}
	q, err := read(ctx)
	if err != nil {
		return err
	}
	ctx.Response.Header.SetCanonical(web.HeaderVary, varyCheck)
	return s.check(ctx, nil, q)
}

func (s *Server) listenerAsk(ctx *fasthttp.RequestCtx) error {
	if !ctx.IsGet() && !ctx.IsHead() {
		ctx.Response.Header.Set("Allow", "GET, HEAD")
		return refuseAskMethod
	}
	q, err := gateway.AskQuery(ctx)
	if err != nil {
		return err
	}
	return s.askCertificate(ctx, nil, q)
}
