package api

import (
	"bytes"
	"embed"
	"net/http"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// Documents are the READMEs of this room, and openapi.yaml.
//
//go:embed README.md platform/README.md gateway/README.md console/README.md ops/README.md openapi.yaml
var Documents embed.FS

// docsPath is where the documents stand, with a key or without, on every listener but those of gateways.
const docsPath = "/docs/"

// toDocs reports whether a request is for Options.Docs.
func (s *Server) toDocs(c *conn, path []byte) bool {
	return s.router.docs != nil && c.services != Gateway &&
		(bytes.HasPrefix(path, []byte(docsPath)) || string(path) == "/docs")
}

// answerDocs lets Options.Docs answer. A body is not read.
func (s *Server) answerDocs(ctx *fasthttp.RequestCtx) {
	s.router.docs(ctx)
	s.finish(ctx, docsPath, nil, nil)
}

// newDocs makes a handler of Options.Docs.
func newDocs(h http.Handler) fasthttp.RequestHandler {
	if h == nil {
		return nil
	}
	return fasthttpadaptor.NewFastHTTPHandler(h)
}
