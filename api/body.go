package api

import (
	"sync"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver/catalog"
)

// The HTTP library never sees a request body. headerReceived sets its length to 0, and a handler that needs the body
// reads it from the connection (readBody) after it has checked route, key, permission and path. A request that fails
// one of these checks is answered without reading its body (api/README.md, Errors and Keys).

var (
	refuseBodies = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "too many request bodies are being read at this moment; try again later"}
	refuseKeyBodies = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "too many request bodies of this key are being read at this moment; try again later"}
)

// headerReceived is the library's hook after a request's header. It hides the body from the library.
func (s *Server) headerReceived(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	if length := h.ContentLength(); length != 0 && length != -2 { // -2: no body
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect)
	}
	return config
}

// A bodyBudget limits the memory that request bodies take, in bytes: in total and per key. Safe for concurrent use.
type bodyBudget struct {
	total, perKey int64

	mu   sync.Mutex // guards what follows
	used int64
	keys map[string]int64 // by key id
}

// A bodyCharge is what one request has taken of a budget.
type bodyCharge struct {
	budget *bodyBudget
	key    string // its id; "" before the first take
	bytes  int64
}

// take adds n bytes to the charge of a request with the key, or returns the refusal.
func (c *bodyCharge) take(key string, n int64) error {
	b := c.budget
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
	c.key, c.bytes = key, c.bytes+n
	return nil
}

// release ends a charge once the body is no longer in memory. It may be called more than once.
func (c *bodyCharge) release() {
	b := c.budget
	if c.key == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= c.bytes
	if b.keys[c.key] -= c.bytes; b.keys[c.key] == 0 {
		delete(b.keys, c.key)
	}
	c.key, c.bytes = "", 0
}
