package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/resolver/catalog"
)

// maxBodyDepth is the deepest nesting of a request body.
const maxBodyDepth = 32

const bodyField = "body"

var (
	errDeep     = errors.New("is nested deeper than 32 levels")
	errRepeated = errors.New("has a name twice in one object")
)

// An object is a JSON object of a request body. Its values are nil, bool, json.Number, string, []any and *object.
type object struct {
	names  []string // in the order of the body
	values map[string]any
}

// readBody reads and decodes a request's body, which must be a JSON object. Call it last: everything that can be
// checked without the body is checked first, and the body stays unread until then. The object holds no memory of the
// request. fields are those that the call takes, and readOnly others that an answer may have. All fields but the former
// are ignored, and named in the answer's X-Ignored-Fields. With "Prefer: handling=strict" a field that is neither is a
// problem.
func (s *Server) readBody(r *request, fields, readOnly []string) (body *object, problems catalog.Problems, err error) {
	h := &r.ctx.Request.Header
	if err := checkMediaType(h); err != nil {
		return nil, nil, err
	}
	text, err := s.bodyText(r)
	if err != nil {
		return nil, nil, err
	}
	if body, err = decodeBody(text); err != nil {
		return nil, nil, err
	}
	var ignored []string
	strict := prefersStrict(h)
	for _, name := range body.names {
		switch {
		case slices.Contains(fields, name):
		case strict && !slices.Contains(readOnly, name):
			problems.Addf(name, "is not a field of this request")
		default:
			ignored = append(ignored, name)
		}
	}
	if len(ignored) > 0 {
		r.ctx.Response.Header.Set(headerIgnored, ignoredText(ignored))
	}
	return body, problems, nil
}

const (
	headerIgnored = "X-Ignored-Fields"
	maxIgnored    = 1024 // bytes of its value, but for the mark of what is left out
)

// ignoredText is the value of X-Ignored-Fields, in the order of the body.
func ignoredText(names []string) string {
	var text []byte
	for i, name := range names {
		if i > 0 {
			text = append(text, ", "...)
		}
		before := len(text)
		if text = catalog.AppendHeaderText(text, name); len(text) > maxIgnored {
			return string(text[:before]) + "..."
		}
		text = append(text[:before], bytes.ReplaceAll(text[before:], []byte{','}, []byte("%2C"))...)
	}
	return string(text)
}

// bodyText reads a request's body. It may be called again.
func (s *Server) bodyText(r *request) (text []byte, err error) {
	if r.body != nil {
		return *r.body, nil
	}
	text, err = r.conn.ReadBody(func(n int64) error { return s.bodies.take(&r.conn.charge, r.key.ID, n) })
	if refused := (*gate.Refusal)(nil); errors.As(err, &refused) {
		return nil, refusedByGate(refused)
	}
	if err == nil {
		r.body = &text
	}
	return text, err
}

// checkMediaType accepts JSON in UTF-8 without a content coding. A missing Content-Type counts as JSON.
func checkMediaType(h *fasthttp.RequestHeader) error {
	kind, params, _ := strings.Cut(string(h.ContentType()), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	params = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(params), `"`, ""))
	coding := strings.ToLower(strings.TrimSpace(string(h.Peek("Content-Encoding"))))
	switch {
	case kind != "" && kind != "application/json":
		return &catalog.Error{Code: codeMediaType, Message: "the body must be application/json, and the Content-Type " +
			"header must say so (curl -d by itself says otherwise)"}
	case strings.HasPrefix(params, "charset=") && params != "charset=utf-8":
		return &catalog.Error{Code: codeMediaType, Message: "the body must be encoded in UTF-8"}
	case coding != "" && coding != "identity":
		return &catalog.Error{Code: codeMediaType, Message: "the body must not be compressed"}
	}
	return nil
}

// decodeBody accepts one JSON object and nothing else. What encoding/json would quietly change or drop (invalid UTF-8,
// lone surrogates, all but the last of repeated names) is an error.
func decodeBody(text []byte) (*object, error) {
	if !utf8.Valid(text) {
		return nil, badBody(invalidUTF8(text), "is not valid UTF-8")
	}
	// Check the syntax of the whole body first: a token reader sees only as far as it has read.
	if !json.Valid(text) {
		syntax := new(json.SyntaxError)
		errors.As(json.Unmarshal(text, new(json.RawMessage)), &syntax)
		return nil, badBody(int(syntax.Offset), "is malformed JSON: "+syntax.Error())
	}
	if at := loneSurrogate(text); at >= 0 {
		return nil, badBody(at, "has half of a surrogate pair in a string")
	}
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); trimmed[0] != '{' {
		return nil, badBody(len(text)-len(trimmed), "must be a JSON object")
	}
	tokens := json.NewDecoder(bytes.NewReader(text))
	tokens.UseNumber()
	value, err := decodeValue(tokens, 0)
	if err != nil {
		return nil, badBody(int(tokens.InputOffset()), err.Error())
	}
	return value.(*object), nil
}

func badBody(at int, message string) error {
	return invalidField(bodyField, message+" (at byte "+strconv.Itoa(at)+")")
}

// decodeValue reads the next value of a body whose syntax has been checked. depth is how many arrays and objects it is
// in.
func decodeValue(tokens *json.Decoder, depth int) (any, error) {
	token, err := tokens.Token()
	if err != nil {
		return nil, err
	}
	opening, nested := token.(json.Delim)
	if !nested {
		return token, nil
	}
	if depth == maxBodyDepth {
		return nil, errDeep
	}
	if opening == '[' {
		list := []any{}
		for tokens.More() {
			value, err := decodeValue(tokens, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = tokens.Token() // the closing bracket
		return list, err
	}
	o := &object{values: map[string]any{}}
	for tokens.More() {
		token, err := tokens.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string)
		if _, repeated := o.values[name]; repeated {
			return nil, errRepeated
		}
		o.names = append(o.names, name)
		if o.values[name], err = decodeValue(tokens, depth+1); err != nil {
			return nil, err
		}
	}
	_, err = tokens.Token() // the closing brace
	return o, err
}

// invalidUTF8 returns the position of the first byte that is not UTF-8, len(b) if all is.
func invalidUTF8(b []byte) (at int) {
	for at < len(b) {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// loneSurrogate returns the position of the first \u escape of half a surrogate pair in valid JSON, or -1.
func loneSurrogate(b []byte) int {
	unit := func(at int) rune { // of the escape \uXXXX at this position, 0 if there is none
		if len(b) < at+6 || b[at] != '\\' || b[at+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(b[at+2:at+6]), 16, 16)
		return rune(n)
	}
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		switch first := unit(i); {
		case !utf16.IsSurrogate(first):
			i++ // the escaped character may be a backslash
		case utf16.DecodeRune(first, unit(i+6)) == utf8.RuneError:
			return i
		default:
			i += 11
		}
	}
	return -1
}

// prefersStrict reads the Prefer header fields (RFC 7240).
func prefersStrict(h *fasthttp.RequestHeader) bool {
	for _, value := range h.PeekAll("Prefer") {
		for pref := range strings.SplitSeq(string(value), ",") {
			pref, _, _ = strings.Cut(pref, ";")
			name, setting, _ := strings.Cut(pref, "=")
			if strings.EqualFold(strings.TrimSpace(name), "handling") && strings.EqualFold(strings.Trim(strings.TrimSpace(setting), `"`), "strict") {
				return true
			}
		}
	}
	return false
}
