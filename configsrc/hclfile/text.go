package hclfile

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Terminal attributes of WriteText.
const (
	ansiRed    = "\x1b[31;1m"
	ansiYellow = "\x1b[33;1m"
	ansiBold   = "\x1b[1m"
	ansiDim    = "\x1b[2m"
	ansiReset  = "\x1b[0m"
)

// WriteText prints ds for people, in their order:
//
//	projects.d/acme.hcl:12:5: error: unknown attribute "primry"
//	  12 |     primry = true
//	     |     ^^^^^^
//	  did you mean `primary`?
//
// Colour is for terminals. The error is the writer's.
func (ds Diagnostics) WriteText(w io.Writer, color bool) error {
	out := bufio.NewWriter(w)
	paint := func(code, s string) string {
		if !color || s == "" {
			return s
		}
		return code + s + ansiReset
	}
	for _, d := range ds {
		tone := ansiRed
		if d.Severity == Warning {
			tone = ansiYellow
		}
		place := printable(d.File)
		if d.Start.Line > 0 {
			place += fmt.Sprintf(":%d:%d", d.Start.Line, d.Start.Column)
		}
		fmt.Fprintf(out, "%s: %s: %s\n", paint(ansiBold, place), paint(tone, string(d.Severity)), paint(ansiBold, d.Summary))
		if d.Snippet != "" {
			line := strconv.Itoa(d.Start.Line)
			under, carets := d.underline()
			fmt.Fprintf(out, "  %s %s\n", paint(ansiDim, line+" |"), d.Snippet)
			fmt.Fprintf(out, "  %s %s%s\n", paint(ansiDim, strings.Repeat(" ", len(line))+" |"), under, paint(tone, carets))
		}
		for line := range strings.Lines(d.Detail) {
			fmt.Fprintf(out, "  %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	return out.Flush()
}

// underline returns the line below the snippet: blanks (tabs stay tabs) and carets under the marked bytes.
func (d *Diagnostic) underline() (blanks, carets string) {
	from, to := min(d.mark[0], len(d.Snippet)), min(d.mark[1], len(d.Snippet))
	var b strings.Builder
	for _, r := range d.Snippet[:from] {
		switch {
		case r == '\t':
			b.WriteByte('\t')
		default:
			b.WriteString(strings.Repeat(" ", width(r)))
		}
	}
	n := 0
	for _, r := range d.Snippet[from:max(from, to)] {
		n += width(r)
	}
	return b.String(), strings.Repeat("^", max(n, 1))
}

// width returns the number of columns that a terminal gives a character: 0 for marks, 2 for East Asian ones, as far as
// needed here.
func width(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul), r >= 0x1f300 && r < 0x1fb00,
		r >= 0xff01 && r <= 0xff60:
		return 2
	}
	return 1
}

// printable escapes characters that a terminal would execute or that would deceive a reader: control characters except
// line feeds and tabs, directional overrides, and bytes that are not UTF-8.
func printable(s string) string {
	clean := true
	for i, r := range s {
		if Unprintable(r, s[i:]) && r != '\n' {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\n' {
			b.WriteByte('\n')
			i++
			continue
		}
		i += appendEscaped(&b, s[i:])
	}
	return b.String()
}

// appendEscaped writes the first character of s, escaped if need be, and returns its length in s.
func appendEscaped(b *strings.Builder, s string) int {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case !Unprintable(r, s):
		b.WriteString(s[:n])
	case r == utf8.RuneError || r < 0x80:
		fmt.Fprintf(b, `\x%02x`, s[0])
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
	return n
}

// Unprintable reports whether r, the first character of s, must be escaped.
func Unprintable(r rune, s string) bool {
	switch {
	case r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return true
	case r == utf8.RuneError:
		_, n := utf8.DecodeRuneInString(s)
		return n < 2
	case r < 0x300:
		return false
	}
	return r != 0x200d && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
