package api

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

var (
	contentJSON     = []byte("application/json; charset=utf-8")
	headerRequestID = []byte("X-Request-Id")
	headerChallenge = []byte("WWW-Authenticate")
	challenge       = []byte(`ApiKey realm="fingerpost"`)
	tokenChallenge  = []byte(`Bearer error="invalid_token"`)
	headerETag      = []byte("ETag")
	headerVary      = []byte("Vary")
	varyPlatform    = []byte(headerVaryPlatform)
	varyMail        = []byte("X-Internal-Service-Token, X-Internal-Service-Name")
	cacheNever      = []byte("no-store")
	cacheChecked    = []byte("private, no-cache") // may be stored, and is revalidated by its ETag each time
)

// headerVaryPlatform is the Vary of every answer to a platform key.
const headerVaryPlatform = "X-PLATFORM-KEY"

// A secondText is the text of a second: for the envelope's timestamp, and for the header Date.
type secondText struct {
	unix int64
	text [len("2026-01-31T09:30:00.")]byte
	date [len(http.TimeFormat)]byte
}

// lastSecond caches the text of the current second, so that a response formats six digits.
var lastSecond atomic.Pointer[secondText]

// secondOf returns the text of t's second. Safe for concurrent use.
func secondOf(t time.Time) *secondText {
	unix := t.Unix()
	s := lastSecond.Load()
	if s == nil || s.unix != unix {
		s = &secondText{unix: unix}
		t.UTC().AppendFormat(s.text[:0], "2006-01-02T15:04:05.")
		t.UTC().AppendFormat(s.date[:0], http.TimeFormat)
		lastSecond.Store(s)
	}
	return s
}

// The text of a successful envelope around the message, which is plain ASCII without quotes.
const (
	envelopeBegin = `{"success":true,"message":"`
	envelopeData  = `","data":`
)

// envelopeEnd is the number of bytes that endEnvelope appends.
const envelopeEnd = len(`,"timestamp":"2026-01-31T09:30:00.000000"}`)

// endEnvelope appends the timestamp, in UTC with microseconds and without a zone, and closes the envelope.
func endEnvelope(dst []byte, now time.Time) []byte {
	dst = append(dst, `,"timestamp":"`...)
	dst = append(dst, secondOf(now).text[:]...)
	micros := uint32(now.Nanosecond() / 1000)
	return append(dst,
		byte('0'+micros/100000), byte('0'+micros/10000%10), byte('0'+micros/1000%10),
		byte('0'+micros/100%10), byte('0'+micros/10%10), byte('0'+micros%10), '"', '}')
}

// succeed answers with an envelope around data, which is JSON.
func (r *request) succeed(message string, data []byte) {
	r.ctx.Response.Header.SetContentTypeBytes(contentJSON)
	body := append(make([]byte, 0, len(data)+128), envelopeBegin...)
	body = append(append(append(body, message...), envelopeData...), data...)
	r.ctx.Response.SetBodyRaw(endEnvelope(body, time.Now()))
}

// failHead sets what the answers to all errors have in their heads.
func failHead(h *fasthttp.ResponseHeader, status int, e *catalog.Error) {
	h.SetStatusCode(status)
	h.SetCanonical(headerCacheControl, cacheNever)
	switch status {
	case http.StatusUnauthorized:
		if e == refuseToken {
			h.SetCanonical(headerChallenge, tokenChallenge)
		} else {
			h.SetCanonical(headerChallenge, challenge)
		}
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "5")
	}
}

// fail answers with the error envelope, in the mail form if the path belongs to the mail service, and with data, which
// is JSON or nil. The path is a parameter because the library forgets it when it fails to read a request.
func fail(ctx *fasthttp.RequestCtx, path string, status int, e *catalog.Error, data []byte) {
	failHead(&ctx.Response.Header, status, e)
	ctx.Response.Header.SetContentTypeBytes(contentJSON)
	body := make([]byte, 0, 512)
	body = append(body, `{"success":false,"error":{"code":"`...)
	body = append(body, e.Code...)
	body = append(body, `","message":`...)
	body = resolver.AppendString(body, e.Message)
	if len(e.Problems) > 0 {
		body = append(body, `,"details":`...)
		body = web.AppendProblems(body, e.Problems)
	}
	body = append(body, '}')
	if data != nil {
		body = append(append(body, `,"data":`...), data...)
	}
	if isMailPath(path) {
		body = append(body, `,"message":`...)
		body = resolver.AppendString(body, e.Message)
		body = append(body, `,"path":`...)
		body = resolver.AppendString(body, strings.ToValidUTF8(path, "\ufffd"))
		body = append(body, `,"status":`...)
		body = strconv.AppendInt(body, int64(status), 10)
		body = append(body, `,"validationErrors":`...)
		body = web.AppendProblems(body, e.Problems)
	}
	ctx.Response.SetBodyRaw(endEnvelope(body, time.Now()))
}
