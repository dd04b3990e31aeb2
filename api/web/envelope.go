package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// Header fields and values, as the HTTP library takes them.
var (
	ContentJSON        = []byte("application/json; charset=utf-8")
	HeaderRequestID    = []byte("X-Request-Id")
	headerChallenge    = []byte("WWW-Authenticate")
	challenge          = []byte(`ApiKey realm="fingerpost"`)
	tokenChallenge     = []byte(`Bearer error="invalid_token"`)
	secretChallenge    = []byte(`Basic realm="inbound"`) // Amazon SNS sends the secret when it is asked for it
	HeaderCacheControl = []byte("Cache-Control")
	HeaderLocation     = []byte(fasthttp.HeaderLocation)
	headerRetryAfter   = []byte("Retry-After")
	HeaderETag         = []byte("ETag")
	HeaderVary         = []byte("Vary")
	VaryPlatform       = []byte(VaryPlatformText)
	VaryMail           = []byte("X-Internal-Service-Token, X-Internal-Service-Name")
	CacheNever         = []byte("no-store")
	cacheChecked       = []byte("private, no-cache") // may be stored, and is revalidated by its ETag each time
)

// VaryPlatformText is the Vary of every answer to a platform key.
const VaryPlatformText = "X-PLATFORM-KEY"

// A SecondText is the text of a second: for the envelope's timestamp, and for the header Date.
type SecondText struct {
	unix int64
	Text [len("2026-01-31T09:30:00.")]byte
	Date [len(http.TimeFormat)]byte
}

// lastSecond caches the text of the current second, so that a response formats six digits.
var lastSecond atomic.Pointer[SecondText]

// SecondOf returns the text of t's second. Safe for concurrent use.
func SecondOf(t time.Time) *SecondText {
	unix := t.Unix()
	s := lastSecond.Load()
	if s == nil || s.unix != unix {
		s = &SecondText{unix: unix}
		t.UTC().AppendFormat(s.Text[:0], "2006-01-02T15:04:05.")
		t.UTC().AppendFormat(s.Date[:0], http.TimeFormat)
		lastSecond.Store(s)
	}
	return s
}

// The text of a successful envelope around the message, which is plain ASCII without quotes.
const (
	EnvelopeBegin = `{"success":true,"message":"`
	EnvelopeData  = `","data":`
)

// EnvelopeEnd is the number of bytes that EndEnvelope appends.
const EnvelopeEnd = len(`,"timestamp":"2026-01-31T09:30:00.000000"}`)

// EndEnvelope appends the timestamp, in UTC with microseconds and without a zone, and closes the envelope.
func EndEnvelope(dst []byte, now time.Time) []byte {
	dst = append(dst, `,"timestamp":"`...)
	dst = append(dst, SecondOf(now).Text[:]...)
	micros := uint32(now.Nanosecond() / 1000)
	return append(dst,
		byte('0'+micros/100000), byte('0'+micros/10000%10), byte('0'+micros/1000%10),
		byte('0'+micros/100%10), byte('0'+micros/10%10), byte('0'+micros%10), '"', '}')
}

// Succeed answers with an envelope around data, which is JSON.
func (r *Request) Succeed(message string, data []byte) {
	r.Ctx.Response.Header.SetContentTypeBytes(ContentJSON)
	body := append(make([]byte, 0, len(data)+128), EnvelopeBegin...)
	body = append(append(append(body, message...), EnvelopeData...), data...)
	r.Ctx.Response.SetBodyRaw(EndEnvelope(body, time.Now()))
}

// SucceedJSON is Succeed with data that encoding/json encodes. Its tags name the fields.
func (r *Request) SucceedJSON(message string, data any) error {
	b, err := EncodeJSON(data)
	if err != nil {
		return err
	}
	r.Succeed(message, b)
	return nil
}

// EncodeJSON returns data as the API writes JSON: without escapes for HTML.
func EncodeJSON(data any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(data)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// RetryAfter tells the client how long to wait, in whole seconds.
func RetryAfter(ctx *fasthttp.RequestCtx, wait time.Duration) {
	seconds := int64((wait + time.Second - 1) / time.Second)
	ctx.Response.Header.SetCanonical(headerRetryAfter, strconv.AppendInt(nil, seconds, 10))
}

// FailHead sets what the answers to all errors have in their heads.
func FailHead(h *fasthttp.ResponseHeader, status int, e *catalog.Error) {
	h.SetStatusCode(status)
	h.SetCanonical(HeaderCacheControl, CacheNever)
	switch status {
	case http.StatusUnauthorized:
		switch e {
		case RefuseToken:
			h.SetCanonical(headerChallenge, tokenChallenge)
		case RefuseSecret:
			h.SetCanonical(headerChallenge, secretChallenge)
		default:
			h.SetCanonical(headerChallenge, challenge)
		}
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "5")
	}
}

// Fail answers with the error envelope, in the mail form if the path belongs to the mail service, and with data, which
// is JSON or nil. The path is a parameter because the library forgets it when it fails to read a request.
func Fail(ctx *fasthttp.RequestCtx, path string, status int, e *catalog.Error, data []byte) {
	FailHead(&ctx.Response.Header, status, e)
	ctx.Response.Header.SetContentTypeBytes(ContentJSON)
	body := make([]byte, 0, 512)
	body = append(body, `{"success":false,"error":{"code":"`...)
	body = append(body, e.Code...)
	body = append(body, `","message":`...)
	body = rowjson.AppendString(body, e.Message)
	if len(e.Problems) > 0 {
		body = append(body, `,"details":`...)
		body = AppendProblems(body, e.Problems)
	}
	if e.Requires != 0 {
		body = append(body, `,"requires":"`...)
		body = append(body, strings.Join(e.Requires.Words(), ",")...)
		body = append(body, '"')
	}
	body = append(body, '}')
	if data != nil {
		body = append(append(body, `,"data":`...), data...)
	}
	if IsMailPath(path) {
		body = append(body, `,"message":`...)
		body = rowjson.AppendString(body, e.Message)
		body = append(body, `,"path":`...)
		body = rowjson.AppendString(body, strings.ToValidUTF8(path, "\ufffd"))
		body = append(body, `,"status":`...)
		body = strconv.AppendInt(body, int64(status), 10)
		body = append(body, `,"validationErrors":`...)
		body = AppendProblems(body, e.Problems)
	}
	ctx.Response.SetBodyRaw(EndEnvelope(body, time.Now()))
}

// SucceedSaved answers a call that has created or changed a resource of a kind.
func (r *Request) SucceedSaved(kind string, created bool, data []byte, etag, location string) {
	if !created {
		r.SucceedWritten(kind+" updated", data, etag)
		return
	}
	r.SucceedCreated(kind+" created", data, location)
	r.Ctx.Response.Header.SetCanonical(HeaderETag, []byte(etag))
}

// SucceedCreated answers 201 with the location of the new resource.
func (r *Request) SucceedCreated(message string, data []byte, location string) {
	r.Succeed(message, data)
	r.Ctx.Response.SetStatusCode(http.StatusCreated)
	r.Ctx.Response.Header.SetCanonical(HeaderLocation, []byte(location))
}

// SucceedWritten answers a PUT with the resource and its ETag. A body of unknown fields only has a typing error in it,
// which "updated" would hide.
func (r *Request) SucceedWritten(message string, data []byte, etag string) {
	if r.ignored != "" {
		message = "nothing changed; ignored: " + r.ignored
	}
	r.Ctx.Response.Header.SetCanonical(HeaderETag, []byte(etag))
	r.Succeed(message, data)
}

// HeadChunked answers HEAD for a GET whose body has no known length. With a body stream fasthttp would send the empty
// line that ends a chunked body, and the client would read it as part of the next answer.
func HeadChunked(ctx *fasthttp.RequestCtx) {
	if ctx.Request.Header.IsHTTP11() {
		ctx.Response.Header.SetContentLength(-1)
	}
}
