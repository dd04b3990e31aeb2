package rowjson

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"

	"fingerpost/resolver/catalog"
)

// Millis is a time that is written in milliseconds, with a Z (api/README.md, Answers).
type Millis time.Time

// AppendObject appends a JSON object to dst: names, which need no escaping, each followed by its value.
func AppendObject(dst []byte, fields ...any) []byte {
	dst = append(dst, '{')
	for i := 0; i < len(fields); i += 2 {
		dst = append(appendComma(dst, i), '"')
		dst = append(dst, fields[i].(string)...)
		dst = appendValue(append(dst, '"', ':'), fields[i+1])
	}
	return append(dst, '}')
}

func appendValue(dst []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case string:
		return AppendString(dst, v)
	case *string:
		if v == nil {
			return append(dst, "null"...)
		}
		return AppendString(dst, *v)
	case []string:
		return AppendStrings(dst, v)
	case []catalog.Label:
		return AppendLabels(dst, v)
	case catalog.Locales:
		return appendLocales(dst, v)
	case catalog.UUID:
		return AppendString(dst, v.String())
	case time.Time:
		return v.UTC().AppendFormat(dst, `"`+catalog.MomentLayout+`"`)
	case Millis:
		return time.Time(v).UTC().AppendFormat(dst, `"2006-01-02T15:04:05.000Z"`)
	case raw:
		return append(dst, v...)
	case []raw:
		dst = append(dst, '[')
		for i, o := range v {
			dst = append(appendComma(dst, i), o...)
		}
		return append(dst, ']')
	}
	panic("rowjson: a value of a type that no case handles: impossible while the callers and this switch agree")
}

// A raw is JSON already: an object in another one. An AppendObject that called itself would move the buffer of a resolve
// answer from the stack to the heap.
type raw []byte

func object(fields ...any) raw { return AppendObject(nil, fields...) }

// AppendStrings appends a list of strings to dst.
func AppendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		dst = AppendString(appendComma(dst, i), s)
	}
	return append(dst, ']')
}

// appendComma appends a comma before all members of a list or an object but the first.
func appendComma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

// nullIf returns v, or null.
func nullIf(null bool, v any) any {
	if null {
		return nil
	}
	return v
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. It must be valid UTF-8, like all text from the files.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[plain:i]...)
		plain = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}

// ETag returns the strong, quoted ETag of a JSON text: 128 bits of its hash. The forms of an answer differ in their
// text, so their tags differ too.
func ETag(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// WithoutTimes removes the values of createdAt and updatedAt from a JSON text, in place. They belong to one store and
// are lost with it, while an ETag must be the same on every node (api/README.md, Caching). A string in JSON cannot
// contain the text that is searched: its quotes are escaped.
func WithoutTimes(text []byte) []byte {
	name, kept := []byte(`edAt":"`), text[:0]
	for {
		at := bytes.Index(text, name)
		if at < 0 {
			return append(kept, text...)
		}
		at += len(name) - 1
		kept = append(kept, text[:at]...)
		text = text[at+1:]
		text = text[bytes.IndexByte(text, '"')+1:]
	}
}
