package web

import (
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
)

// RequestIDs make request ids: a random prefix per process and a counter, so that a new id costs neither entropy nor
// an allocation. Safe for concurrent use.
type RequestIDs struct {
	prefix [17]byte // 16 hexadecimal digits and a hyphen
	count  atomic.Uint64
}

// NewRequestIDs makes the RequestIDs of a process.
func NewRequestIDs() *RequestIDs {
	ids := &RequestIDs{}
	var random [8]byte
	rand.Read(random[:])
	hex.Encode(ids.prefix[:16], random[:])
	ids.prefix[16] = '-'
	return ids
}

// idsAtOnce is how many ids a connection reserves at a time, because all cores share the counter.
const idsAtOnce = 256

// An IDRange is the range of ids that a connection has reserved.
type IDRange struct{ next, end uint64 }

// Append appends the id of a request: the client's own if it is well formed, else a new one from the range.
func (ids *RequestIDs) Append(dst, callers []byte, own *IDRange) []byte {
	if len(callers) <= MaxRequestID && gate.Word(callers) {
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

// MaxRequestID is the longest client id that is accepted, in bytes.
const MaxRequestID = 128

// RequestID returns the id that the response carries.
func RequestID(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Response.Header.PeekCanonical(HeaderRequestID))
}
