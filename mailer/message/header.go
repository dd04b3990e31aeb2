package message

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

const (
	maxHeaderLine  = 76 // RFC 2047 2 for lines with an encoded word; the others may have 78 (RFC 5322 2.1.1)
	maxEncodedWord = 75 // RFC 2047 2
	wordOpen       = "=?UTF-8?B?"
	wordClose      = "?="
)

// encodeSubject returns the subject's value for the header, to be folded at its spaces.
func encodeSubject(subject string) string {
	if foldable(subject, len("Subject: ")) {
		return subject
	}
	return encodeWords(subject, len("Subject: "))
}

// encodeName returns a name as the phrase before an address (RFC 5322 3.4): a quoted string if ASCII suffices.
func encodeName(name string) string {
	quoted := `"` + quote.Replace(name) + `"`
	if foldable(name, 0) && foldable(quoted, len("From: ")) {
		return quoted
	}
	return encodeWords(name, len("From: "))
}

var quote = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// foldable reports whether every reader decodes s unchanged if it is written without encoding, after indent bytes of
// the line. That needs printable ASCII, words that fit on a line, and single spaces only, because readers treat a fold
// next to several spaces differently. A word that looks like an encoded word would be decoded, even within quotes.
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
			return false // at the beginning, or after another space
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

// encodeWords returns s as encoded words (RFC 2047, B) separated by spaces, each of whole characters. The first one
// leaves room for indent bytes on its line.
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

// appendHeader appends a header, folded at the spaces of its value so that lines stay within maxHeaderLine if the words
// allow it. Words are separated by single spaces. The first word always stays on the line of the name, because some
// readers take an empty first line for an empty header.
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
