package api

import (
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
)

// requestIDs makes request ids: a random prefix per process and a counter, so that a new id costs neither entropy nor
// an allocation. Safe for concurrent use.
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

// idsAtOnce is how many ids a connection reserves at a time, because all cores share the counter.
const idsAtOnce = 256

// An idRange is the range of ids that a connection has reserved.
type idRange struct{ next, end uint64 }

// append appends the id of a request: the client's own if it is well formed, else a new one from the range.
func (ids *requestIDs) append(dst, callers []byte, own *idRange) []byte {
	if len(callers) <= maxRequestID && gate.Word(callers) {
		return append(dst, callers...)
	}
	if own.next == own.end {
		own.end = ids.count.Add(idsAtOnce)
		own.next = own.end - idsAtOnce
	}
	own.next++
	dst = append(dst, ids.prefix[:]...)
	for shift := 44; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[own.next>>shift&15])
	}
	return dst
}

// maxRequestID is the longest client id that is accepted, in bytes.
const maxRequestID = 128

// requestID returns the id that the response carries.
func requestID(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Response.Header.PeekCanonical(headerRequestID))
}
