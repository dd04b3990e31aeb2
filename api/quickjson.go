package api

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A quickReader decodes a body in one pass and copies of it only what it returns. It takes what decodeBody takes, and
// gives up on anything else without a word: then encoding/json reads the body again, and says what is wrong with it and
// where. The body must be valid UTF-8.
type quickReader struct {
	b  []byte
	at int
}

// quickObject decodes a body that is one sound JSON object; false for all others.
func quickObject(body []byte) (*object, bool) {
	r := quickReader{b: body}
	if r.next() != '{' {
		return nil, false
	}
	o, ok := r.object(1)
	return o, ok && r.next() == 0 && r.at == len(body)
}

// next skips blanks and returns the byte after them, which is not taken; 0 at the end.
func (r *quickReader) next() byte {
	for ; r.at < len(r.b); r.at++ {
		if c := r.b[r.at]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
	}
	return 0
}

// take takes a byte where it comes next.
func (r *quickReader) take(c byte) bool {
	if r.next() != c {
		return false
	}
	r.at++
	return true
}

func (r *quickReader) value(depth int) (v any, ok bool) {
	switch c := r.next(); c {
	case '"':
		return r.text()
	case '{':
		return r.object(depth + 1)
	case '[':
		return r.array(depth + 1)
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	case 'n':
		return nil, r.word("null")
	default:
		return r.number()
	}
}

func (r *quickReader) word(w string) bool {
	if len(r.b)-r.at < len(w) || string(r.b[r.at:r.at+len(w)]) != w {
		return false
	}
	r.at += len(w)
	return true
}

func (r *quickReader) array(depth int) (any, bool) {
	list := []any{}
	if r.at++; depth > maxBodyDepth {
		return nil, false
	}
	if r.take(']') {
		return list, true
	}
	for {
		v, ok := r.value(depth)
		if !ok {
			return nil, false
		}
		list = append(list, v)
		if r.take(']') {
			return list, true
		}
		if !r.take(',') {
			return nil, false
		}
	}
}

func (r *quickReader) object(depth int) (*object, bool) {
	o := &object{values: map[string]any{}}
	if r.at++; depth > maxBodyDepth {
		return nil, false
	}
	if r.take('}') {
		return o, true
	}
	for {
		if r.next() != '"' {
			return nil, false
		}
		name, ok := r.text()
		if _, repeated := o.values[name]; !ok || repeated || !r.take(':') {
			return nil, false
		}
		if o.values[name], ok = r.value(depth); !ok {
			return nil, false
		}
		o.names = append(o.names, name)
		if r.take('}') {
			return o, true
		}
		if !r.take(',') {
			return nil, false
		}
	}
}

// text reads a string, which begins here.
func (r *quickReader) text() (string, bool) {
	r.at++
	start := r.at
	n := plainRun(r.b[start:])
	if r.at += n; r.at == len(r.b) {
		return "", false
	}
	if r.b[r.at] == '"' {
		r.at++
		return string(r.b[start : r.at-1]), true
	}
	var out strings.Builder
	out.Grow(n + 1 + bytes.IndexByte(r.b[r.at:], '"')) // enough, unless that one is escaped
	out.Write(r.b[start:r.at])
	for {
		switch r.b[r.at] {
		case '"':
			r.at++
			return out.String(), true
		case '\\':
			if !r.escape(&out) {
				return "", false
			}
		default: // a control character
			return "", false
		}
		n := plainRun(r.b[r.at:])
		out.Write(r.b[r.at : r.at+n])
		if r.at += n; r.at == len(r.b) {
			return "", false
		}
	}
}

// plainRun is how many bytes at the beginning of a string stand for themselves.
func plainRun(b []byte) int {
	for i, c := range b {
		if !plainText[c] {
			return i
		}
	}
	return len(b)
}

// plainText tells the bytes that stand for themselves in a string.
var plainText = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// escape reads what begins with a backslash, pairs of surrogates together.
func (r *quickReader) escape(out *strings.Builder) bool {
	if r.at+1 >= len(r.b) {
		return false
	}
	c := r.b[r.at+1]
	r.at += 2
	switch c {
	case '"', '\\', '/':
		out.WriteByte(c)
	case 'b':
		out.WriteByte('\b')
	case 'f':
		out.WriteByte('\f')
	case 'n':
		out.WriteByte('\n')
	case 'r':
		out.WriteByte('\r')
	case 't':
		out.WriteByte('\t')
	case 'u':
		unit, ok := r.unit()
		switch {
		case !ok || unit >= 0xdc00 && unit <= 0xdfff:
			return false
		case unit >= 0xd800 && unit <= 0xdbff:
			if !r.word(`\u`) {
				return false
			}
			low, ok := r.unit()
			if !ok || low < 0xdc00 || low > 0xdfff {
				return false
			}
			unit = 0x10000 + (unit-0xd800)<<10 + low - 0xdc00
		}
		out.WriteRune(rune(unit))
	default:
		return false
	}
	return true
}

// unit reads the four hexadecimal digits of an escape.
func (r *quickReader) unit() (unit int, ok bool) {
	if len(r.b)-r.at < 4 {
		return 0, false
	}
	for _, c := range r.b[r.at : r.at+4] {
		if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
			return 0, false
		}
	}
	unit = escapedUnit(r.b[r.at:])
	r.at += 4
	return unit, true
}

// number reads a number as it is spelled (RFC 8259 6).
func (r *quickReader) number() (any, bool) {
	start := r.at
	r.skip('-')
	if !r.skip('0') && !r.digits() {
		return nil, false
	}
	if r.skip('.') && !r.digits() {
		return nil, false
	}
	if r.skip('e') || r.skip('E') {
		if !r.skip('+') {
			r.skip('-')
		}
		if !r.digits() {
			return nil, false
		}
	}
	return json.Number(r.b[start:r.at]), true
}

// skip takes a byte where it comes at once.
func (r *quickReader) skip(c byte) bool {
	if r.at == len(r.b) || r.b[r.at] != c {
		return false
	}
	r.at++
	return true
}

// digits takes one or more.
func (r *quickReader) digits() bool {
	start := r.at
	for r.at < len(r.b) && r.b[r.at] >= '0' && r.b[r.at] <= '9' {
		r.at++
	}
	return r.at > start
}
