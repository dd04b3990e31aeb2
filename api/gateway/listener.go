package gateway

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

// The paths of a gateway listener. Its address is the credential: it needs no key.
const (
	listenerCheckPath = gate.CheckPath
	// AskPath asks whether a certificate may be fetched.
	AskPath = "/ask"
)

// RefusePeer is the error for a peer that Options.MayAsk refuses.
var RefusePeer = &catalog.Error{Code: catalog.CodeForbidden,
	Message: "this address may not ask here: serve --gate-allow CIDR lets it in"}

var refuseAskMethod = &catalog.Error{Code: web.CodeMethodNotAllowed, Message: "ask takes GET and HEAD"}

// Pattern returns the path of the call that a request on a gateway listener is for, "" if there is no such call.
func Pattern(ctx *fasthttp.RequestCtx) string {
	path := ctx.URI().PathOriginal()
	rest, isCheck := bytes.CutPrefix(path, []byte(listenerCheckPath))
	switch {
	case isCheck && (len(rest) == 0 || rest[0] == '/' || rest[0] == ';'):
		return listenerCheckPath
	case string(path) == AskPath:
		return AskPath
	}
	return ""
}

// Answer answers a request on a gateway listener. pattern is that of the request.
func (a *API) Answer(ctx *fasthttp.RequestCtx, pattern string) error {
	switch pattern {
	case listenerCheckPath:
		return a.listenerCheck(ctx, ctx.URI().PathOriginal()[len(listenerCheckPath):])
	case AskPath:
		return a.listenerAsk(ctx)
	}
	return web.RefusePath
}

// listenerCheck answers every method: some gateways ask with that of their client.
func (a *API) listenerCheck(ctx *fasthttp.RequestCtx, rest []byte) error {
	read := checkQuery
	if len(rest) > 0 {
		read = func(ctx *fasthttp.RequestCtx) (Query, error) { return prefixQuery(ctx, rest) }
	}
	q, err := read(ctx)
	if err != nil {
		return err
	}
	ctx.Response.Header.SetCanonical(web.HeaderVary, VaryCheck)
	return a.check(ctx, &question{Query: q})
}

func (a *API) listenerAsk(ctx *fasthttp.RequestCtx) error {
	if !ctx.IsGet() && !ctx.IsHead() {
		ctx.Response.Header.Set("Allow", "GET, HEAD")
		return refuseAskMethod
	}
	q, err := askQuery(ctx)
	if err != nil {
		return err
	}
	return a.ask(ctx, &question{Query: q})
}
