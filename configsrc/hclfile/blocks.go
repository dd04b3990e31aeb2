package hclfile

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// AppendBlock puts a top-level block at the end of the file, after a blank line and in the file's line ending. The text
// is one block or several, written with LF and without indentation.
func AppendBlock(src []byte, text string) ([]byte, error) {
	doc, err := openDocument(src)
	if err != nil {
		return nil, err
	}
	block, err := parseBlocks(text)
	if err != nil {
		return nil, err
	}
	lead := ""
	if body := bytes.TrimPrefix(src, bom); len(body) > 0 {
		if !bytes.HasSuffix(body, []byte{'\n'}) {
			lead = "\n"
		}
		if len(bytes.TrimSpace(body)) > 0 && !blankEnd(body) {
			lead += "\n"
		}
	}
	after := doc.splice(len(src), len(src), doc.lineEnding(lead+block.trimmed()))
	before := doc.model()
	want, err := before.plus("", block.model())
	if err != nil {
		return nil, err
	}
	return verified(after, want, keeps(before.comments, block.model().comments))
}

// blankEnd reports whether the last line, which may lack its line feed, is blank.
func blankEnd(src []byte) bool {
	src = bytes.TrimRight(src, " \t")
	cut, ok := bytes.CutSuffix(src, []byte{'\n'})
	if !ok {
		return false
	}
	return bytes.HasSuffix(bytes.TrimRight(cut, " \t\r"), []byte{'\n'})
}

// InsertBlock puts a block into another one, before its closing brace and after a blank line, indented as its siblings
// are. The text is written with LF and without indentation.
func InsertBlock(src []byte, at BlockPath, text string) ([]byte, error) {
	doc, err := openDocument(src)
	if err != nil {
		return nil, err
	}
	inner, err := parseBlocks(text)
	if err != nil {
		return nil, err
	}
	block, err := doc.find(at)
	if err != nil {
		return nil, err
	}
	before := doc.model()
	want, err := before.plus(before.keys[block], inner.model())
	if err != nil {
		return nil, err
	}
	if doc.oneLine(block) {
		if doc, err = doc.openUp(block); err != nil {
			return nil, err
		}
		if block, err = doc.find(at); err != nil {
			return nil, err
		}
	}
	i := doc.after(block.CloseBraceRange.Start.Byte) - 1
	for i > 0 && !breaks(doc.tokens()[i]) { // a comment on the brace's line
		i--
	}
	pos := doc.tokens()[i].Range.End.Byte
	lead := "\n"
	if _, any := firstItem(block.Body); !any || i > 0 && doc.tokens()[i].Type == hclsyntax.TokenNewline && breaks(doc.tokens()[i-1]) {
		lead = ""
	}
	insert := func(indent string) ([]byte, error) {
		after := doc.splice(pos, pos, doc.lineEnding(lead+indentLines(inner.trimmed(), indent, true)))
		return verified(after, want, keeps(before.comments, inner.model().comments))
	}
	after, err := insert(doc.innerIndent(block))
	if err != nil { // an indentation that heredocs in the text do not bear
		return insert("")
	}
	return after, nil
}

// RemoveBlock takes a block out, with the comment directly above it, but not with a comment that the file begins with,
// and with one of the blank lines around it. After the type come the labels, and then, for a block inside others, types
// and labels further in: RemoveBlock(src, "project", "acme", "domain", "old.acme.example").
func RemoveBlock(src []byte, typ string, labels ...string) ([]byte, error) {
	doc, err := openDocument(src)
	if err != nil {
		return nil, err
	}
	block, err := doc.find(append(BlockPath{typ}, labels...))
	if err != nil {
		return nil, err
	}
	lines := doc.lines()
	first, last := block.TypeRange.Start.Line-1, block.CloseBraceRange.End.Line-1
	top := first
	for top > 0 && lines.kind[top-1] == lineComment {
		top--
	}
	if lines.header(top) {
		top = first
	}
	next := last + 1
	blank := func(i int) bool { return i >= 0 && i < len(lines.kind) && lines.kind[i] == lineBlank }
	edge := func(i int) bool { return i < 0 || i >= len(lines.kind) || lines.kind[i] == lineBrace }
	switch {
	case blank(next) && (blank(top-1) || edge(top-1)):
		next++
	case blank(top-1) && edge(next):
		top--
	}
	after := doc.splice(lines.start(top), lines.start(next), "")
	before := doc.model()
	want := map[string]string{}
	for k, v := range before.says {
		if rest, inside := strings.CutPrefix(k, before.keys[block]); inside && (rest == "" || rest[:1] == sep) {
			continue
		}
		want[k] = v
	}
	return verified(after, want, noneNew(before.comments))
}

// What a line holds.
const (
	lineBlank = iota
	lineComment
	lineBrace // nothing but the brace that ends a block, or a line that ends with the one that begins it
	lineCode
)

// lineTable tells what each line of a document holds, by its tokens.
type lineTable struct {
	starts []int // where each line begins; one more for the end of the file
	kind   []int
}

func (doc *document) lines() *lineTable {
	t := &lineTable{starts: []int{0}}
	if bytes.HasPrefix(doc.src, bom) {
		t.starts[0] = len(bom)
	}
	for i, c := range doc.src {
		if c == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}
	if t.starts[len(t.starts)-1] != len(doc.src) {
		t.starts = append(t.starts, len(doc.src))
	}
	t.kind = make([]int, len(t.starts)-1)
	for _, tok := range doc.tokens() {
		kind := lineCode
		switch tok.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenEOF:
			continue
		case hclsyntax.TokenComment:
			kind = lineComment
		case hclsyntax.TokenOBrace, hclsyntax.TokenCBrace:
			kind = lineBrace
		}
		last := tok.Range.End.Line - 1
		if tok.Range.End.Column == 1 && last > tok.Range.Start.Line-1 {
			last-- // it holds its own line feed
		}
		for i := tok.Range.Start.Line - 1; i <= last && i < len(t.kind); i++ {
			switch {
			case tok.Type == hclsyntax.TokenOBrace:
				t.kind[i] = lineBrace
			default:
				t.kind[i] = max(t.kind[i], kind)
			}
		}
	}
	return t
}

func (t *lineTable) start(i int) int { return t.starts[min(i, len(t.starts)-1)] }

// header reports whether a run of comments that begins at line i is the head of the file.
func (t *lineTable) header(i int) bool {
	if i >= len(t.kind) || t.kind[i] != lineComment {
		return false
	}
	for _, kind := range t.kind[:i] {
		if kind != lineBlank {
			return false
		}
	}
	return true
}

// blocks is text that is to be put into a file.
type blocks struct{ *document }

// parseBlocks reads text that must hold blocks and comments only.
func parseBlocks(text string) (*blocks, error) {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n") + "\n"
	doc, err := openDocument([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: the new block: %w", ErrVerify, err)
	}
	if len(doc.body.Blocks) == 0 || len(doc.body.Attributes) > 0 {
		return nil, fmt.Errorf("%w: the new text is no block", ErrVerify)
	}
	return &blocks{doc}, nil
}

func (b *blocks) trimmed() string { return string(b.src) }

// plus is what a file says after the blocks of another were put into one of its own, given by its key.
func (m *model) plus(block string, other *model) (map[string]string, error) {
	all := maps.Clone(m.says)
	for k, v := range other.says {
		if _, taken := all[block+k]; taken {
			return nil, ErrExists
		}
		all[block+k] = v
	}
	return all, nil
}
