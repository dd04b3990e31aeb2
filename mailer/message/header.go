package message

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

const (
	maxHeaderLine   = 76 // RFC 2047 2 for lines with an encoded word; the others may have 78 (RFC 5322 2.1.1)
	maxEncodedWord  = 75 // RFC 2047 2
	wordOpen        = "=?UTF-8?B?"
	wordClose       = "?="
	fromHeaderName  = "From"
	subjectHeader   = "Subject"
	headerSeparator = ": "
)

// encodeSubject returns the subject as it stands in the header, to be folded at its spaces.
func encodeSubject(subject string) string {
	if foldable(subject, len(subjectHeader+headerSeparator)) {
		return subject
	}
	return encodeWords(subject, len(subjectHeader+headerSeparator))
}

// encodeName returns a name as the phrase before an address (RFC 5322 3.4): a quoted string where ASCII will do.
func encodeName(name string) string {
	quoted := `"` + quote.Replace(name) + `"`
	if foldable(name, 0) && foldable(quoted, len(fromHeaderName+headerSeparator)) {
		return quoted
	}
	return encodeWords(name, len(fromHeaderName+headerSeparator))
}

var quote = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// foldable reports whether s can be written without encoding after as many bytes of the line as indent, so that every
// reader gets it back exactly: printable ASCII, words that fit on a line, and single spaces between them only, since
// readers differ in what they make of a fold next to more. What looks like an encoded word would be decoded, also within
// quotes.
func foldable(s string, indent int) bool {
	if strings.Contains(s, "=?") {
		return false
	}
	word, limit := 0, maxHeaderLine-indent
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			return false
		case c == ' ' && word == 0:
			return false // at the beginning, or after another
		case c == ' ':
			word, limit = 0, maxHeaderLine-1
		default:
			if word++; word > limit {
				return false
			}
		}
	}
	return word > 0
}

// encodeWords returns s as encoded words (RFC 2047, B) with a space between them, each of whole characters. The first one
// leaves room for as many bytes as indent on its line.
func encodeWords(s string, indent int) string {
	var b strings.Builder
	room := min(maxEncodedWord, maxHeaderLine-indent)
	for s != "" {
		n := min(len(s), (room-len(wordOpen+wordClose))/4*3)
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(wordOpen)
		b.WriteString(base64.StdEncoding.EncodeToString([]byte(s[:n])))
		b.WriteString(wordClose)
		s, room = s[n:], maxEncodedWord
	}
	return b.String()
}

// appendHeader appends a header, folded at the spaces of its value so that lines stay within maxHeaderLine where words let
// them. Words are separated by single spaces; the first one always stands next to the name, because some readers take an
// empty first line for an empty header.
func appendHeader(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ':')
	column := len(name) + 1
	for first := true; ; first = false {
		word, rest, more := strings.Cut(value, " ")
		if !first && column+1+len(word) > maxHeaderLine {
			dst = append(dst, "\r\n"...)
			column = 0
		}
		dst = append(dst, ' ')
		dst = append(dst, word...)
		if column += 1 + len(word); !more {
			return append(dst, "\r\n"...)
		}
		value = rest
	}
}
