package hclfile

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Quote writes a string as an HCL literal in double quotes. Bytes that are no UTF-8 become U+FFFD. The parser gives back
// the string in Unicode's normal form C.
func Quote(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unsafeRune(r, s[i:]) && r != utf8.RuneError:
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		case (r == '$' || r == '%') && strings.HasPrefix(s[i+1:], "{"):
			b.WriteRune(r)
			b.WriteRune(r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}

// looksConflicting reports text in which a heredoc's lines would be taken for what git leaves where it cannot merge.
func looksConflicting(s string) bool { return strings.Contains("\n"+s, "\n<<<<<<< ") }

// Literal writes a string as a person would: in double quotes, or, for text of several lines, as a heredoc: <<- with its
// text indented, else <<, with trimsuffix() around it where the text has no final newline. The first of these that reads
// back as exactly s is taken; in the end quotes hold anything.
func Literal(s string) string {
	if !strings.Contains(s, "\n") || looksConflicting(s) || strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && unsafeRune(r, string(r)) }) {
		return Quote(s)
	}
	for _, indent := range []string{"  ", ""} {
		text := heredocForm(indent).write(s)
		if e, err := parseExpression("x", text); err == nil && e.canonical(e.expr) == "string "+s {
			return text
		}
	}
	return Quote(s)
}
