package message

import (
	"strings"
	"unicode/utf8"

	"fingerpost/resolver/catalog"
)

// checkHeaderText checks a text for a header, and reports whether it is valid.
func checkHeaderText(ps *catalog.Problems, path, text string, limit int) (ok bool) {
	if len(text) > limit {
		ps.Addf(path, "has %d bytes, %d are allowed", len(text), limit)
		return false
	}
	if !utf8.ValidString(text) {
		ps.Addf(path, "is not valid UTF-8")
		return false
	}
	for i, r := range text {
		switch {
		case strings.ContainsRune("\r\n\u2028\u2029\u0085", r):
			ps.Addf(path, "must be one line: it holds the line break %U at byte %d", r, i+1)
			return false
		case catalog.BreaksLine(r):
			ps.Addf(path, "must not hold control characters: %U stands at byte %d", r, i+1)
			return false
		}
	}
	return true
}

// checkBody checks a body and makes its line breaks LF. Of the control characters, which no mail reader shows, only
// tabs and line breaks are allowed. U+0080 to U+009F pass: they come from wrongly declared Windows texts.
func checkBody(ps *catalog.Problems, path string, body *string) {
	if len(*body) > maxPartBytes {
		ps.Addf(path, "has %d bytes, %d are allowed", len(*body), maxPartBytes)
		return
	}
	if !utf8.ValidString(*body) {
		line, column := position(*body, invalidAt(*body))
		ps.Addf(path, "line %d, column %d: is not valid UTF-8", line, column)
		return
	}
	for i := range len(*body) {
		if c := (*body)[i]; catalog.UnfitForBody(rune(c)) {
			line, column := position(*body, i)
			ps.Addf(path, "line %d, column %d: must not hold control characters other than tabs and line breaks: this is %U",
				line, column, rune(c))
			return
		}
	}
	*body = withLF(*body)
}

// withLF makes each line break one LF. A text without CR is not copied.
func withLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// invalidAt returns the offset of the first byte that is not part of valid UTF-8.
func invalidAt(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return len(s)
}

// position converts an offset into a line and a column in characters, both from 1.
func position(s string, at int) (line, column int) {
	before := withLF(s[:at])
	last := strings.LastIndexByte(before, '\n')
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[last+1:])
}
