package say

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A DiffLine is a line of a unified diff.
type DiffLine struct {
	Kind  string // file, hunk, add, del or same
	Mark  string // what stands before it
	Parts []DiffPart
}

// A DiffPart is a stretch of a line.
type DiffPart struct {
	Text    string
	Changed bool
}

// Text returns the line without its mark.
func (l *DiffLine) Text() string {
	var b strings.Builder
	for _, p := range l.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// The bounds of the work, in cells of the tables of common words.
const (
	pairCells = 40_000
	allCells  = 4_000_000
)

// DiffLines returns the first lines of a unified diff, at most most of them, and how many it has. In a changed line,
// the changed words are marked.
//
// Removed lines are compared with the added lines that follow them, the first with the first. What two lines have in
// common is the longest common subsequence of their words; where they have little in common, nothing is marked. The
// cost is bounded: a pair of lines takes at most pairCells steps and a diff allCells, after which only the beginning
// and the end that two lines share stay unmarked.
func DiffLines(diff string, most int) (lines []DiffLine, all int) {
	inFile := false // the header of a file has ended
	for l := range strings.Lines(diff) {
		if all++; all > most {
			continue
		}
		line := kindOf(strings.TrimRight(l, "\n"), inFile)
		inFile = line.Kind != "file"
		lines = append(lines, line)
	}
	m := marker{cells: allCells}
	for i := 0; i < len(lines); {
		dels := run(lines[i:], "del")
		adds := run(lines[i+dels:], "add")
		for j := range min(dels, adds) {
			m.mark(&lines[i+j], &lines[i+dels+j])
		}
		i += max(dels+adds, 1)
	}
	return lines, all
}

// kindOf reads a line. A removed line "-- x" looks like a file's name: it can only stand in a hunk.
func kindOf(l string, inFile bool) DiffLine {
	line := func(kind, mark, text string) DiffLine { return DiffLine{kind, mark, []DiffPart{{Text: text}}} }
	switch {
	case strings.HasPrefix(l, "--- ") && (!inFile || strings.HasPrefix(l, "--- a/") || l == "--- /dev/null"):
		return line("file", "---", l[4:])
	case strings.HasPrefix(l, "+++ ") && !inFile:
		return line("file", "+++", l[4:])
	case strings.HasPrefix(l, "@@"):
		return line("hunk", "", l)
	case strings.HasPrefix(l, "+"):
		return line("add", "+", l[1:])
	case strings.HasPrefix(l, "-"):
		return line("del", "-", l[1:])
	}
	return line("same", " ", strings.TrimPrefix(l, " "))
}

// run returns how many lines of a kind come first.
func run(lines []DiffLine, kind string) (n int) {
	for n < len(lines) && lines[n].Kind == kind {
		n++
	}
	return n
}

// A marker marks what two lines do not have in common.
type marker struct{ cells int } // that are left

func (m *marker) mark(del, add *DiffLine) {
	a, b := words(del.Text()), words(add.Text())
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	inA, inB := a[head:len(a)-tail], b[head:len(b)-tail]
	keepA, keepB := make([]bool, len(a)), make([]bool, len(b))
	for i := range a {
		keepA[i] = i < head || i >= len(a)-tail
	}
	for i := range b {
		keepB[i] = i < head || i >= len(b)-tail
	}
	if cells := len(inA) * len(inB); cells <= min(pairCells, m.cells) {
		m.cells -= cells
		common(inA, inB, keepA[head:], keepB[head:])
	}
	if 3*kept(a, keepA) < len(del.Text()) && 3*kept(b, keepB) < len(add.Text()) {
		return // two lines that have little to do with each other
	}
	del.Parts, add.Parts = parts(a, keepA), parts(b, keepB)
}

// common notes the words of the longest common subsequence.
func common(a, b []string, keepA, keepB []bool) {
	width := len(b) + 1
	longest := make([]int, (len(a)+1)*width) // from word i of a and j of b on
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			} else {
				longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			keepA[i], keepB[j] = true, true
			i, j = i+1, j+1
		case longest[(i+1)*width+j] >= longest[i*width+j+1]:
			i++
		default:
			j++
		}
	}
}

// kept counts the bytes of words that stay, without blanks.
func kept(words []string, keep []bool) (n int) {
	for i, w := range words {
		if keep[i] && strings.TrimSpace(w) != "" {
			n += len(w)
		}
	}
	return n
}

// parts joins words to stretches that are changed and that are not.
func parts(words []string, keep []bool) (list []DiffPart) {
	for i, w := range words {
		if n := len(list); n > 0 && list[n-1].Changed != keep[i] {
			list[n-1].Text += w
		} else {
			list = append(list, DiffPart{w, !keep[i]})
		}
	}
	return list
}

// words splits a text into words, blanks, and other characters one by one.
func words(s string) (list []string) {
	class := func(r rune) int {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), r == '_':
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	for s != "" {
		first, end := utf8.DecodeRuneInString(s)
		for kind := class(first); kind != 0 && end < len(s); {
			r, size := utf8.DecodeRuneInString(s[end:])
			if class(r) != kind {
				break
			}
			end += size
		}
		list, s = append(list, s[:end]), s[end:]
	}
	return list
}
