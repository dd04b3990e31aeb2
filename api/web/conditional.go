package web

import (
	"bytes"
	"slices"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver/catalog"
)

var ifNoneMatch = []byte(fasthttp.HeaderIfNoneMatch)

// MatchesETag reports whether an If-None-Match value names etag, which is strong and quoted. Comparison is weak, as
// RFC 9110, 13.1.2 has it.
func MatchesETag(list []byte, etag string) bool {
	return string(list) == etag || namesETag(list, etag, true)
}

// StrongMatch reports whether an If-Match value names etag; a weak tag never does (RFC 9110, 13.1.1).
func StrongMatch(list []byte, etag string) bool { return namesETag(list, etag, false) }

func namesETag(list []byte, etag string, weak bool) bool {
	for len(list) > 0 {
		var tag []byte
		list = bytes.TrimLeft(list, " \t,")
		if len(list) > 0 && list[0] == '*' {
			return true
		}
		var isWeak bool
		list, isWeak = bytes.CutPrefix(list, []byte("W/"))
		if len(list) == 0 || list[0] != '"' {
			return false // malformed from here on: no match, which sends all and changes nothing
		}
		end := bytes.IndexByte(list[1:], '"')
		if end < 0 {
			return false
		}
		tag, list = list[:end+2], list[end+2:]
		if string(tag) == etag && (weak || !isWeak) {
			return true
		}
	}
	return false
}

// NotModified reports whether the request's If-None-Match names etag, also where it comes in several lines.
func NotModified(h *fasthttp.RequestHeader, etag string) bool {
	if h.PeekCanonical(ifNoneMatch) == nil {
		return false
	}
	for _, list := range h.PeekAll(fasthttp.HeaderIfNoneMatch) {
		if MatchesETag(list, etag) {
			return true
		}
	}
	return false
}

var (
	refuseMatch = &catalog.Error{Code: catalog.CodePrecondition,
		Message: "the resource is not what If-Match names; read it again"}
	refuseWeak = &catalog.Error{Code: catalog.CodePrecondition,
		Message: "If-Match has a weak tag (W/…), which never matches (RFC 9110, 13.1.1): a proxy in between has weakened " +
			"the ETag, as some do that compress answers; let it pass ETag unchanged, or leave the W/ out"}
	refuseNoneMatch = &catalog.Error{Code: catalog.CodePrecondition, Message: "there is what If-None-Match rules out"}
)

// Matches returns an error if the request has an If-Match that does not name etag, the resource's (RFC 9110, 13.1.1).
func (r *Request) Matches(etag string) error {
	lists := r.Ctx.Request.Header.PeekAll(fasthttp.HeaderIfMatch)
	if len(lists) == 0 || slices.ContainsFunc(lists, func(list []byte) bool { return StrongMatch(list, etag) }) {
		return nil
	}
	if slices.ContainsFunc(lists, func(list []byte) bool { return MatchesETag(list, etag) }) {
		return refuseWeak
	}
	return refuseMatch
}

// MatchesSaved is Matches for a call that creates or changes a resource that exists: If-None-Match may demand that it
// does not exist, or differs (RFC 9110, 13.1.2).
func (r *Request) MatchesSaved(etag string) error {
	if err := r.Matches(etag); err != nil {
		return err
	}
	if NotModified(&r.Ctx.Request.Header, etag) {
		return refuseNoneMatch
	}
	return nil
}

// MatchesNone is MatchesSaved for a resource that does not exist: any If-Match fails.
func (r *Request) MatchesNone() error {
	if len(r.Ctx.Request.Header.PeekAll(fasthttp.HeaderIfMatch)) > 0 {
		return refuseMatch
	}
	return nil
}

// SucceedTagged is Succeed for a single resource: it adds an ETag, and answers 304 if the client has the resource
// already.
func (r *Request) SucceedTagged(message string, data []byte, etag string) {
	r.Ctx.Response.Header.SetCanonical(HeaderETag, []byte(etag))
	r.Ctx.Response.Header.SetCanonical(HeaderCacheControl, cacheChecked)
	if NotModified(&r.Ctx.Request.Header, etag) {
		WriteNotModified(r.Ctx)
		return
	}
	r.Succeed(message, data)
}

// WriteNotModified makes the answer a 304, which has neither a body nor a Content-Type.
func WriteNotModified(ctx *fasthttp.RequestCtx) {
	ctx.Response.ResetBody()
	ctx.Response.Header.SetNoDefaultContentType(true)
	ctx.Response.SetStatusCode(fasthttp.StatusNotModified)
}
