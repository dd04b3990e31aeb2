package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver/catalog"
)

// BodyField is the field of problems of the body as a whole.
const BodyField = "body"

// maxBodyDepth is the deepest nesting of a request body.
const maxBodyDepth = 32

var (
	errDeep     = errors.New("is nested deeper than 32 levels")
	errRepeated = errors.New("has a name twice in one object")
)

// An Object is a JSON object of a request body. Its values are nil, bool, json.Number, string, []any and *Object.
type Object struct {
	Names  []string // in the order of the body
	Values map[string]any
}

// maxIgnored bounds the value of X-Ignored-Fields, in bytes, but for the mark of what is left out.
const maxIgnored = 1024

// IgnoredText is the value of X-Ignored-Fields, in the order of the body.
func IgnoredText(names []string) string {
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

// CheckMediaType accepts JSON in UTF-8 without a content coding. A missing Content-Type counts as JSON.
func CheckMediaType(h *fasthttp.RequestHeader) error {
	// RFC 9110 8.3.1: parameters in any order. Of one that cannot be read only the type counts.
	kind, params, err := mime.ParseMediaType(string(h.ContentType()))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) && len(h.ContentType()) > 0 {
		kind = "unreadable"
	}
	charset := params["charset"]
	coding := strings.ToLower(strings.TrimSpace(string(h.Peek("Content-Encoding"))))
	switch {
	case kind != "" && kind != "application/json":
		return &catalog.Error{Code: CodeMediaType, Message: "the body must be application/json, and the Content-Type " +
			"header must say so (curl -d by itself says otherwise)"}
	case charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8"):
		return &catalog.Error{Code: CodeMediaType, Message: "the body must be encoded in UTF-8"}
	case coding != "" && coding != "identity":
		return &catalog.Error{Code: CodeMediaType, Message: "the body must not be compressed"}
	}
	return nil
}

// DecodeBody accepts one JSON object and nothing else. What encoding/json would quietly change or drop (invalid UTF-8,
// lone surrogates, all but the last of repeated names) is an error. A byte order mark before it is ignored (RFC 8259
// 8.1); offsets in errors count from behind it.
func DecodeBody(text []byte) (*Object, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
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
	return value.(*Object), nil
}

func badBody(at int, message string) error {
	return InvalidField(BodyField, message+" (at byte "+strconv.Itoa(at)+")")
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
	o := &Object{Values: map[string]any{}}
	for tokens.More() {
		token, err := tokens.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string)
		if _, repeated := o.Values[name]; repeated {
			return nil, errRepeated
		}
		o.Names = append(o.Names, name)
		if o.Values[name], err = decodeValue(tokens, depth+1); err != nil {
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

// PrefersStrict reads the Prefer header fields (RFC 7240): "handling=strict".
func PrefersStrict(h *fasthttp.RequestHeader) bool {
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
