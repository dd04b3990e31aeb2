package web

import (
	"bytes"

	"github.com/valyala/fasthttp"
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
