package web

import (
	"slices"
	"unicode/utf8"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// Details are bounded in number and length: they quote the client's names and texts, and an answer must not grow with
// the request.
const (
	maxDetails       = 40
	MaxDetailField   = 100 // bytes
	MaxDetailMessage = 500 // bytes
)

// AppendProblems appends the details of an error, as JSON.
func AppendProblems(dst []byte, problems catalog.Problems) []byte {
	dst = append(dst, '[')
	if more := len(problems) - maxDetails; more > 0 {
		problems = slices.Clone(problems[:maxDetails])
		problems.Addf(BodyField, "has %d more failures, which are not listed", more)
	}
	for i, p := range problems {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"field":`...)
		dst = rowjson.AppendString(dst, Shortened(p.Path, MaxDetailField))
		dst = append(dst, `,"message":`...)
		dst = rowjson.AppendString(dst, Shortened(p.Message, MaxDetailMessage))
		if p.Records != nil {
			dst = append(append(dst, `,"records":`...), p.Records...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// Shortened returns s, cut to at most the given number of bytes and "…".
func Shortened(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
