package hclfile

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A Source is one file: its bytes, syntax tree and tokens, and the ranges of its secrets. It is for one goroutine at a
// time.
type Source struct {
	Src  []byte
	Body *hclsyntax.Body // nil until parsed
	path string
	// broken says that the tree lacks parts of the file. Secrets are then searched by line and token as well.
	broken bool
	// hostile says that the file must not be lexed as a whole.
	hostile bool

	once    sync.Once
	secrets []span // sorted, apart; see secretSpans
	lexed   hclsyntax.Tokens
}

// Parse reads the syntax of a file that is going to be edited. The Source is nil where the file is beyond the limits.
func Parse(src []byte) (*Source, Diagnostics) {
	s := &Source{path: "config", Src: src}
	if ds := s.guard(); len(ds) > 0 {
		return nil, ds
	}
	_, ds := s.parse()
	return s, ds
}

// Tokens returns the tokens of the whole file. They are cached, because lexing takes as long as parsing.
func (s *Source) Tokens() hclsyntax.Tokens {
	if s.lexed == nil {
		s.lexed, _ = hclsyntax.LexConfig(s.Src, s.path, hcl.InitialPos)
	}
	return s.lexed
}

// EndsLine reports whether a token ends a line: a newline, or a comment that begins with # or //, which includes its
// newline.
func EndsLine(tok hclsyntax.Token) bool {
	return tok.Type == hclsyntax.TokenNewline || tok.Type == hclsyntax.TokenComment && bytes.HasSuffix(tok.Bytes,
		[]byte{'\n'})
}

// A span is a range of bytes, the end exclusive.
type span struct{ from, to int }

// redacted replaces a secret in a snippet.
const redacted = "(redacted)"

// maxSnippet bounds the bytes of a line that a snippet shows.
const maxSnippet = 200

// diagnostic makes a Diagnostic for a range of s.
func (s *Source) diagnostic(severity Severity, rng hcl.Range, summary, detail string) Diagnostic {
	if rng.End.Byte < rng.Start.Byte || rng.End.Byte > len(s.Src) { // of a node that the parser did not finish
		rng.End = rng.Start
	}
	d := Diagnostic{
		Severity: severity, Summary: printable(summary), Detail: printable(detail), File: s.path,
		Start: position(rng.Start), End: position(rng.End),
	}
	d.Snippet, d.mark = s.snippet(rng.Start.Byte, rng.End.Byte)
	return d
}

func position(p hcl.Pos) Pos { return Pos{Line: p.Line, Column: p.Column, Byte: p.Byte} }

// at returns a position in the form of WriteText, for a detail that points elsewhere.
func (s *Source) at(rng hcl.Range) string {
	return fmt.Sprintf("%s:%d:%d", s.path, rng.Start.Line, rng.Start.Column)
}

// Text returns the source text of a range.
func (s *Source) Text(rng hcl.Range) string {
	from, to := clamp(rng.Start.Byte, len(s.Src)), clamp(rng.End.Byte, len(s.Src))
	if from >= to {
		return ""
	}
	return string(s.Src[from:to])
}

// rangeAt returns the range of src[from:to], for places without a syntax node.
func (s *Source) rangeAt(from, to int) hcl.Range {
	start := s.posAt(from)
	end := start
	if to > from {
		end = s.posAt(to)
	}
	return hcl.Range{Filename: s.path, Start: start, End: end}
}

func (s *Source) posAt(at int) hcl.Pos {
	at = clamp(at, len(s.Src))
	start := s.lineStart(at)
	pos := hcl.Pos{Line: 1 + bytes.Count(s.Src[:start], []byte{'\n'}), Column: 1, Byte: at}
	if start == 0 && at >= len(bom) && bytes.HasPrefix(s.Src, bom) {
		start = len(bom) // the lexer gives the mark no column
	}
	// The scanner counts characters as the lexer does.
	all := func(data []byte, _ bool) (int, []byte, error) { return len(data), data, nil }
	if scanner := hcl.NewRangeScanner(s.Src[start:at], s.path, all); scanner.Scan() {
		pos.Column = scanner.Range().End.Column
	}
	return pos
}

func (s *Source) lineStart(at int) int { return 1 + bytes.LastIndexByte(s.Src[:at], '\n') }

// lineEnd returns the end of the line that at is on, before its line feed.
func (s *Source) lineEnd(at int) int {
	if n := bytes.IndexByte(s.Src[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(s.Src)
}

// snippet returns the line of src[from] and the positions of from and to in it.
func (s *Source) snippet(from, to int) (string, [2]int) {
	from = clamp(from, len(s.Src))
	lineStart, lineEnd := s.lineStart(from), s.lineEnd(from)
	if lineStart == 0 && bytes.HasPrefix(s.Src, bom) {
		lineStart = min(len(bom), lineEnd)
	}
	if lineEnd > lineStart && s.Src[lineEnd-1] == '\r' {
		lineEnd--
	}
	from = max(min(from, lineEnd), lineStart)
	to = max(min(to, lineEnd), from)
	var b strings.Builder
	start, end := lineStart, lineEnd
	if lineEnd-lineStart > maxSnippet {
		start = s.runeStart(max(lineStart, from-maxSnippet/3), lineStart)
		end = s.runeStart(min(lineEnd, start+maxSnippet), start)
		to = min(to, end)
		if start > lineStart {
			b.WriteString("…")
		}
	}
	mark := [2]int{-1, -1}
	secrets := s.secretSpans()
	for i := start; i < end; {
		if mark[0] < 0 && i >= from {
			mark[0] = b.Len()
		}
		if mark[1] < 0 && i >= to {
			mark[1] = b.Len()
		}
		for len(secrets) > 0 && secrets[0].to <= i {
			secrets = secrets[1:]
		}
		if len(secrets) > 0 && secrets[0].from <= i {
			if mark[0] < 0 && secrets[0].to > from {
				mark[0] = b.Len()
			}
			b.WriteString(redacted)
			i = secrets[0].to
			continue
		}
		i += appendEscaped(&b, string(s.Src[i:min(i+utf8.UTFMax, len(s.Src))]))
	}
	for i := range mark {
		if mark[i] < 0 {
			mark[i] = b.Len()
		}
	}
	if end < lineEnd {
		b.WriteString("…")
	}
	return b.String(), mark
}

// runeStart moves at back to the first byte of a character, not before low.
func (s *Source) runeStart(at, low int) int {
	for at > low && at < len(s.Src) && !utf8.RuneStart(s.Src[at]) {
		at--
	}
	return at
}

func clamp(at, high int) int { return max(0, min(at, high)) }
