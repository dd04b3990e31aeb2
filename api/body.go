package api

import (
	"errors"
	"sync"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/resolver/catalog"
)

// The HTTP library never sees a request body: headerReceived tells it that there is none, and a handler that needs the
// body reads it from the connection, once route, key, permission and path are known to be good. All that is wrong with
// those is answered without the body (api/README.md, Errors and Keys).

var (
	refuseBodies    = &refusal{Code: catalog.CodeUnavailable, Message: "too many request bodies are being read at this moment; try again later"}
	refuseKeyBodies = &refusal{Code: catalog.CodeUnavailable, Message: "too many request bodies of this key are being read at this moment; try again later"}
)

// A bodyBudget counts the request bodies that the server holds in memory, in bytes. Safe for concurrent use.
type bodyBudget struct {
	total, perKey int64

	mu   sync.Mutex // guards what follows
	used int64
	keys map[string]int64 // by the key's id; no entry is 0
}

func newBodyBudget(l Limits) *bodyBudget {
	return &bodyBudget{total: l.Bodies, perKey: l.BodiesPerKey, keys: map[string]int64{}}
}

// Take charges n bytes to the key, or reports why not.
func (b *bodyBudget) Take(key string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.keys[key]+n > b.perKey:
		return refuseKeyBodies
	case b.used+n > b.total:
		return refuseBodies
	}
	b.used += n
	b.keys[key] += n
	return nil
}

// Give takes a charge back.
func (b *bodyBudget) Give(key string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.keys[key] -= n; b.keys[key] == 0 {
		delete(b.keys, key)
	}
}

// headerReceived is called when the library has read a request's header. It hides the body from the library.
func (s *Server) headerReceived(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	if length := h.ContentLength(); length != 0 && length != -2 { // -2: there is none
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect)
	}
	return config
}

// requestBody reads the request's body.
func requestBody(ctx *fasthttp.RequestCtx) ([]byte, error) {
	c := connOf(ctx)
	if c == nil {
		return ctx.Request.Body(), nil
	}
	body, err := c.ReadBody()
	if refused := (*gate.Refusal)(nil); errors.As(err, &refused) {
		err = refusedByGate(refused)
	}
	return body, err
}

// dropBody tells that the request's body is not in memory any more: a handler that waits for another server has no
// right to the budget meanwhile.
func (r *request) dropBody() {
	if c := connOf(r.ctx); c != nil {
		c.ReleaseBody()
	}
}
