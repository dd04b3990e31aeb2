package hclfile

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// exactText returns the text of a literal as the file has it. The parser brings every string into Unicode's normal form
// C, which would change texts that people or the API wrote in another form. The text is read from the source again
// where it may differ, and is taken only if its normal form is the parser's value.
func (s *Source) exactText(l *hclsyntax.LiteralValueExpr, heredoc bool) string {
	value, raw := l.Val.AsString(), s.Text(l.SrcRange)
	if isASCII(raw) && (heredoc || !strings.Contains(strings.ToLower(raw), `\u`)) {
		return value
	}
	var text string
	if heredoc {
		text = unindent(raw, value)
	} else {
		text = unescape(raw)
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "$${", "${"), "%%{", "%{")
	if cty.NormalizeString(text) != value {
		return value
	}
	return text
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// unindent removes from each line of a heredoc as many leading blanks as the parser did. The first line of raw begins
// after them.
func unindent(raw, value string) string {
	lines, values := strings.SplitAfter(raw, "\n"), strings.SplitAfter(value, "\n")
	if len(lines) != len(values) {
		return raw
	}
	for i := range lines {
		if more := leadingBlanks(lines[i]) - leadingBlanks(values[i]); more > 0 {
			lines[i] = lines[i][more:]
		}
	}
	return strings.Join(lines, "")
}

func leadingBlanks(s string) int { return len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace)) }

// unescape replaces the escape sequences of a quoted string, which the parser has accepted.
func unescape(raw string) string {
	var b strings.Builder
	for raw != "" {
		i := strings.IndexByte(raw, '\\')
		if i < 0 || i+1 == len(raw) {
			break
		}
		b.WriteString(raw[:i])
		c := raw[i+1]
		raw = raw[i+2:]
		digits := map[byte]int{'u': 4, 'U': 8}[c]
		switch {
		case c == 'n':
			b.WriteByte('\n')
		case c == 'r':
			b.WriteByte('\r')
		case c == 't':
			b.WriteByte('\t')
		case digits > 0 && len(raw) >= digits:
			code, err := strconv.ParseUint(raw[:digits], 16, 32)
			if err != nil {
				return ""
			}
			b.WriteRune(rune(code))
			raw = raw[digits:]
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + raw
}
