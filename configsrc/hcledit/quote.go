package hcledit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"fingerpost/configsrc/hclfile"
)

// Quote returns a string as an HCL literal in double quotes. Invalid UTF-8 becomes U+FFFD. hclfile reads the
// same string from it.
func Quote(s string) string { return quote(s, false) }

// quote is Quote. With flat, $ and % are written \u0024 and \u0025, because the lexer begins a new token at each of
// them, and characters beyond ASCII are not escaped.
func quote(s string, flat bool) string {
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
		case hclfile.Unprintable(r, s[i:]) && r != utf8.RuneError && (r < 0x80 || !flat):
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		case flat && (r == '$' || r == '%'):
			fmt.Fprintf(&b, `\u%04x`, r)
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

// looksConflicting reports whether a heredoc with this text would look like a merge conflict of git.
func looksConflicting(s string) bool { return strings.Contains("\n"+s, "\n<<<<<<< ") }

// Literal returns a string as a person would write it: in double quotes, or, for text of several lines, as a heredoc.
// The heredoc is <<- with its text indented, else <<, with trimsuffix() around it if the text has no final newline. The
// first form that reads back as exactly s is used; quotes always do. Text that would be slow to parse in that form, or
// much longer than s, gets the shortest form.
func Literal(s string) string {
	text := literal(s)
	if len(text) <= len(s)+len(s)/2+1000 {
		return text
	}
	others := []string{quote(s, true)}
	if !strings.ContainsRune(s, '\r') && fitsHeredoc(s) && !looksConflicting(s) {
		others = append(others, heredocForm("").write(s))
	}
	for _, other := range others {
		if len(other) < len(text) && says(other, s) {
			text = other
		}
	}
	return text
}

func literal(s string) string {
	if hclfile.Heavy(escapes(s), s) {
		return quote(s, true)
	}
	if !strings.Contains(s, "\n") || !fitsHeredoc(s) || looksConflicting(s) || strings.ContainsFunc(s,
		func(r rune) bool { return r != '\n' && hclfile.Unprintable(r, string(r)) }) {
		return Quote(s)
	}
	for _, indent := range []string{"  ", ""} {
		if text := heredocForm(indent).write(s); says(text, s) {
			return text
		}
	}
	return Quote(s)
}

// says reports whether an expression's text reads back as s.
func says(text, s string) bool {
	e, err := parseExpression("x", text)
	return err == nil && e.Canonical(e.expr) == "string "+s
}

// escapes returns the number of pieces that the lexer makes of s at $ and %.
func escapes(s string) int { return 2 * (strings.Count(s, "$") + strings.Count(s, "%")) }

// fitsHeredoc reports whether s can be the text of a heredoc.
func fitsHeredoc(s string) bool { return !hclfile.Heavy(strings.Count(s, "\n")+escapes(s), s) }
