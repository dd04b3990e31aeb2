package web

import (
	"sync"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver/catalog"
)

// The HTTP library never sees a request body. HideBody sets its length to 0, and a handler that needs the body
// reads it from the connection (Request.ReadBody) after it has checked route, key, permission and path. A request that fails
// one of these checks is answered without reading its body (api/README.md, Errors and Keys).

var (
	refuseBodies = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "too many request bodies are being read at this moment; try again later"}
	refuseKeyBodies = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "too many request bodies of this key are being read at this moment; try again later"}
)

// A BodyBudget limits the memory that request bodies take, in bytes: in total and per key. Safe for concurrent use.
type BodyBudget struct {
	total, perKey int64

	mu   sync.Mutex // guards what follows
	used int64
	keys map[string]int64 // by key id
}

// NewBodyBudget makes a BodyBudget of the given numbers of bytes.
func NewBodyBudget(total, perKey int64) *BodyBudget {
	return &BodyBudget{total: total, perKey: perKey, keys: map[string]int64{}}
}

// Charge returns the charge of a request that has taken nothing yet.
func (b *BodyBudget) Charge() BodyCharge { return BodyCharge{budget: b} }

// A BodyCharge is what one request has taken of a budget.
type BodyCharge struct {
	budget *BodyBudget
	key    string // its id; "" before the first take
	bytes  int64
}

// Take adds n bytes to the charge of a request with the key, or returns the refusal.
func (c *BodyCharge) Take(key string, n int64) error {
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

// Release ends a charge once the body is no longer in memory. It may be called more than once.
func (c *BodyCharge) Release() {
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

// HideBody is the library's hook after a request's header. It hides the body from the library.
func HideBody(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	if length := h.ContentLength(); length != 0 && length != -2 { // -2: no body
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect)
	}
	return config
}
