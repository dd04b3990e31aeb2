package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver/catalog"
)

// maxBodyDepth is the deepest nesting of a request body.
const maxBodyDepth = 32

const bodyField = "body"

// An object is a JSON object of a request body. Its values are nil, bool, json.Number, string, []any and *object.
type object struct {
	names  []string // in the order of the body
	values map[string]any
}

// readBody reads and decodes a request's body, which must be a JSON object. Call it last: everything that can be
// checked without the body is checked first, and the body stays unread until then. The result holds no memory of the
// request.
func readBody(ctx *fasthttp.RequestCtx) (*object, error) {
	if err := checkMediaType(&ctx.Request.Header); err != nil {
		return nil, err
	}
	body, err := requestBody(ctx)
	if err != nil {
		return nil, err
	}
	return decodeBody(body)
}

// checkMediaType accepts JSON in UTF-8 without a content coding. A missing Content-Type counts as JSON.
func checkMediaType(h *fasthttp.RequestHeader) error {
	kind, params, _ := strings.Cut(string(h.ContentType()), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	params = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(params), `"`, ""))
	coding := strings.ToLower(strings.TrimSpace(string(h.Peek("Content-Encoding"))))
	switch {
	case kind != "" && kind != "application/json":
		return &catalog.Error{Code: codeMediaType, Message: "the body must be application/json, and the Content-Type header must say so (curl -d by itself says otherwise)"}
	case strings.HasPrefix(params, "charset=") && params != "charset=utf-8":
		return &catalog.Error{Code: codeMediaType, Message: "the body must be encoded in UTF-8"}
	case coding != "" && coding != "identity":
		return &catalog.Error{Code: codeMediaType, Message: "the body must not be compressed"}
	}
	return nil
}

// decodeBody accepts one JSON object and nothing else. What encoding/json would quietly change or drop (invalid UTF-8,
// lone surrogates, all but the last of repeated names) is an error.
func decodeBody(body []byte) (*object, error) {
	if at := invalidUTF8(body); at >= 0 {
		return nil, badBody(at, "is not valid UTF-8")
	}
	// Check the syntax of the whole body first: a token reader sees only as far as it has read.
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, badBody(int(syntax.Offset), "is malformed JSON: "+syntax.Error())
		}
		return nil, badBody(0, "is malformed JSON")
	}
	if at := loneSurrogate(body); at >= 0 {
		return nil, badBody(at, "has half of a surrogate pair in a string")
	}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); trimmed[0] != '{' {
		return nil, badBody(len(body)-len(trimmed), "must be a JSON object")
	}
	d := bodyDecoder{tokens: json.NewDecoder(bytes.NewReader(body))}
	d.tokens.UseNumber()
	value, err := d.value(0)
	if err != nil {
		return nil, err
	}
	return value.(*object), nil
}

func badBody(at int, message string) error {
	var ps catalog.Problems
	ps.Addf(bodyField, "%s (at byte %d)", message, at)
	return invalid(ps...)
}

// A bodyDecoder builds the tree of a body whose syntax has been checked.
type bodyDecoder struct {
	tokens *json.Decoder
}

func (d *bodyDecoder) value(depth int) (any, error) {
	token, err := d.tokens.Token()
	if err != nil {
		return nil, badBody(int(d.tokens.InputOffset()), "is malformed JSON")
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return token, nil
	}
	if depth++; depth > maxBodyDepth {
		return nil, badBody(int(d.tokens.InputOffset()), "is nested deeper than 32 levels")
	}
	if delim == '[' {
		return d.array(depth)
	}
	return d.object(depth)
}

func (d *bodyDecoder) array(depth int) (any, error) {
	list := []any{}
	for d.tokens.More() {
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.tokens.Token()
	return list, err
}

func (d *bodyDecoder) object(depth int) (any, error) {
	o := &object{values: map[string]any{}}
	for d.tokens.More() {
		token, err := d.tokens.Token()
		if err != nil {
			return nil, badBody(int(d.tokens.InputOffset()), "is malformed JSON")
		}
		name := token.(string)
		if _, repeated := o.values[name]; repeated {
			return nil, badBody(int(d.tokens.InputOffset()), "has a name twice in one object")
		}
		if o.values[name], err = d.value(depth); err != nil {
			return nil, err
		}
		o.names = append(o.names, name)
	}
	_, err := d.tokens.Token()
	return o, err
}

// invalidUTF8 returns the position of the first byte that is not UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// loneSurrogate returns the position of the first \u escape of half a surrogate pair in valid JSON, or -1.
func loneSurrogate(b []byte) int {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		i++
		if b[i] != 'u' {
			continue
		}
		at, unit := i-1, escapedUnit(b[i+1:])
		i += 4
		switch {
		case unit >= 0xdc00 && unit <= 0xdfff:
			return at
		case unit >= 0xd800 && unit <= 0xdbff:
			if i+6 >= len(b) || b[i+1] != '\\' || b[i+2] != 'u' {
				return at
			}
			if low := escapedUnit(b[i+3:]); low < 0xdc00 || low > 0xdfff {
				return at
			}
			i += 6
		}
	}
	return -1
}

// escapedUnit reads the four hexadecimal digits after \u in valid JSON.
func escapedUnit(b []byte) uint64 {
	unit, _ := strconv.ParseUint(string(b[:4]), 16, 16)
	return unit
}

// unknownFields adds a problem for each field that is not among known, if the client sends "Prefer: handling=strict".
func (o *object) unknownFields(ps *catalog.Problems, h *fasthttp.RequestHeader, known ...string) {
	if !prefersStrict(h) {
		return
	}
	for _, name := range o.names {
		if !slices.Contains(known, name) {
			ps.Addf(name, "is not a field of this request")
		}
	}
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
