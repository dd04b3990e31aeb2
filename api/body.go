package api

import (
	"errors"
	"sync"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/resolver/catalog"
)

// The HTTP library never sees a request body. headerReceived sets its length to 0, and a handler that needs the body
// reads it from the connection after it has checked route, key, permission and path. A request that fails one of these
// checks is answered without reading its body (api/README.md, Errors and Keys).

var (
	refuseBodies    = &refusal{Code: catalog.CodeUnavailable, Message: "too many request bodies are being read at this moment; try again later"}
	refuseKeyBodies = &refusal{Code: catalog.CodeUnavailable, Message: "too many request bodies of this key are being read at this moment; try again later"}
)

// A bodyBudget limits the memory that request bodies take, in bytes: in total and per key. Safe for concurrent use.
type bodyBudget struct {
	total, perKey int64

	mu   sync.Mutex // guards what follows
	used int64
	keys map[string]int64 // by key id; no entry is 0
}

func newBodyBudget(l Limits) *bodyBudget {
	return &bodyBudget{total: l.Bodies, perKey: l.BodiesPerKey, keys: map[string]int64{}}
}

// Take charges n bytes to the key, or returns the refusal.
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

// Give returns n bytes that Take charged to the key.
func (b *bodyBudget) Give(key string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.keys[key] -= n; b.keys[key] == 0 {
		delete(b.keys, key)
	}
}

// headerReceived is the library's hook after a request's header. It hides the body from the library.
func (s *Server) headerReceived(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	if length := h.ContentLength(); length != 0 && length != -2 { // -2: no body
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

// dropBody ends the charge of the request's body to the budget. A handler that waits for another server calls it first,
// because the body is no longer in memory.
func (r *request) dropBody() {
	if c := connOf(r.ctx); c != nil {
		c.ReleaseBody()
	}
}
