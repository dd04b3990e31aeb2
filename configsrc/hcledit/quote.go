package hcledit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"fingerpost/configsrc/hclfile"
)

// Quote writes a string as an HCL literal in double quotes. Bytes that are no UTF-8 become U+FFFD. The parser gives back
// the string in Unicode's normal form C.
func Quote(s string) string { return quote(s, false) }

// quote is Quote. Flat text is one token for the lexer, which begins a new one at every $ and %: these are written \u0024 and \u0025.
// Characters beyond ASCII stand as they are.
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

// looksConflicting reports text in which a heredoc's lines would be taken for what git leaves where it cannot merge.
func looksConflicting(s string) bool { return strings.Contains("\n"+s, "\n<<<<<<< ") }

// Literal writes a string as a person would: in double quotes, or, for text of several lines, as a heredoc: <<- with its
// text indented, else <<, with trimsuffix() around it where the text has no final newline. The first of these that reads
// back as exactly s is taken; in the end quotes hold anything. Text of which the parser would need too long so, or which
// would take much more room in the file than it has, is written in the shortest way that it can be read in.
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
	if !strings.Contains(s, "\n") || !fitsHeredoc(s) || looksConflicting(s) || strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && hclfile.Unprintable(r, string(r)) }) {
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

// escapes is how many pieces the lexer makes of s at its $ and %.
func escapes(s string) int { return 2 * (strings.Count(s, "$") + strings.Count(s, "%")) }

// fitsHeredoc reports whether the lines of s can be those of a heredoc.
func fitsHeredoc(s string) bool { return !hclfile.Heavy(strings.Count(s, "\n")+escapes(s), s) }
