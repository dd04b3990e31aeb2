package hclfile

import (
	"bytes"
	"fmt"
	"maps"
	"sort"
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
	text = inner.stepped(doc.step(block))
	insert := func(indent string) ([]byte, error) {
		after := doc.splice(pos, pos, doc.lineEnding(lead+indentLines(text, indent, true)))
		return verified(after, want, keeps(before.comments, inner.model().comments))
	}
	after, err := insert(doc.innerIndent(block))
	if err != nil { // an indentation that heredocs in the text do not bear
		text = inner.trimmed()
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
	top := lines.of(block.TypeRange.Start.Byte)
	for first := top; top > 0 && lines.kind[top-1] == lineComment; {
		if top--; lines.header(top) {
			top = first
			break
		}
	}
	// A comment behind the closing brace goes too, as far down as it reaches.
	end, _ := doc.nextLine(block.CloseBraceRange.End.Byte)
	top, next := lines.closeGap(top, lines.of(end-1)+1)
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
	lineBlank   = iota
	lineComment // nothing but comments, none of which began behind something else
	lineClose   // nothing but the brace that ends a block
	lineOpen    // ends with the brace that begins a block
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
		t.add(tok)
	}
	return t
}

// add notes the next token on the lines that it covers.
func (t *lineTable) add(tok hclsyntax.Token) {
	first, last := tok.Range.Start.Line-1, tok.Range.End.Line-1
	if first >= len(t.kind) {
		return
	}
	if tok.Range.End.Column == 1 && last > first {
		last-- // it holds its own line feed
	}
	kind, before := lineCode, t.kind[first]
	switch tok.Type {
	case hclsyntax.TokenNewline, hclsyntax.TokenEOF:
		return
	case hclsyntax.TokenComment:
		kind = lineComment
		if before > lineComment { // it belongs to what stands before it
			kind = lineCode
			t.kind[first] = before
			first++
		}
	case hclsyntax.TokenOBrace:
		kind = lineOpen
	case hclsyntax.TokenCBrace:
		if before <= lineComment {
			kind = lineClose
		}
	}
	for i := first; i <= last && i < len(t.kind); i++ {
		t.kind[i] = kind
	}
}

// of is the line that a byte is on.
func (t *lineTable) of(at int) int {
	return max(0, sort.Search(len(t.starts), func(i int) bool { return t.starts[i] > at })-1)
}

// closeGap widens the lines from top to before next, which are to be taken out, by a blank line, where two would meet or
// one would stand against a brace or an end of the file.
func (t *lineTable) closeGap(top, next int) (int, int) {
	is := func(i, kind int) bool { return i >= 0 && i < len(t.kind) && t.kind[i] == kind }
	switch {
	case is(next, lineBlank) && (top == 0 || is(top-1, lineBlank) || is(top-1, lineOpen)):
		next++
	case is(top-1, lineBlank) && (next >= len(t.kind) || is(next, lineClose)):
		top--
	}
	return top, next
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

// stepped is the text with its levels, of two blanks each, indented by step.
func (b *blocks) stepped(step string) string {
	if step == "  " || bytes.Contains(b.src, []byte("<<")) {
		return b.trimmed()
	}
	var out strings.Builder
	for line := range strings.Lines(string(b.src)) {
		rest := strings.TrimLeft(line, " ")
		out.WriteString(strings.Repeat(step, (len(line)-len(rest))/2))
		out.WriteString(rest)
	}
	return out.String()
}

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
