package api

import (
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// A requestIDs names requests: a random part per process and a counter, so that an id costs no entropy and no
// allocation. Safe for concurrent use.
type requestIDs struct {
	prefix [17]byte // 16 hexadecimal digits and a hyphen
	count  atomic.Uint64
}

func newRequestIDs() *requestIDs {
	ids := &requestIDs{}
	var random [8]byte
	rand.Read(random[:])
	hex.Encode(ids.prefix[:16], random[:])
	ids.prefix[16] = '-'
	return ids
}

// idsAtOnce is how many ids a connection takes at a time: the counter is shared by all cores.
const idsAtOnce = 256

// An idRange is a connection's share of the ids.
type idRange struct{ next, end uint64 }

// take returns a number that no other request has. own may be nil.
func (ids *requestIDs) take(own *idRange) uint64 {
	if own == nil {
		return ids.count.Add(idsAtOnce)
	}
	if own.next == own.end {
		own.end = ids.count.Add(idsAtOnce)
		own.next = own.end - idsAtOnce
	}
	own.next++
	return own.next
}

// set puts X-Request-Id into the response: the caller's own where it is well formed, else a new one of c's range. c may
// be nil.
func (ids *requestIDs) set(h *fasthttp.ResponseHeader, callers []byte, c *conn) {
	var buf [maxRequestID]byte
	h.SetCanonical(headerRequestID, ids.append(buf[:0], callers, c))
}

// append appends the id that set sets.
func (ids *requestIDs) append(dst, callers []byte, c *conn) []byte {
	if validRequestID(callers) {
		return append(dst, callers...)
	}
	var own *idRange
	if c != nil {
		own = &c.hot.ids
	}
	dst = append(dst, ids.prefix[:]...)
	n := ids.take(own)
	for shift := 44; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[n>>shift&15])
	}
	return dst
}

// maxRequestID bounds the callers' ids, in bytes.
const maxRequestID = 128

// requestID is the id that set has put into the response.
func requestID(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Response.Header.PeekCanonical(headerRequestID))
}

func validRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, c := range id {
		if !wordByte(c) {
			return false
		}
	}
	return true
}

// wordByte reports whether c is one of A-Z, a-z, 0-9, dot, underscore and hyphen.
func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '-' || c == '.' || c == '_'
}
