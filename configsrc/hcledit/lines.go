package hcledit

import (
	"bytes"
	"sort"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The kinds of lines.
const (
	lineBlank   = iota
	lineComment // only comments, none of which began after something else
	lineClose   // only the brace that ends a block
	lineOpen    // ends with the brace that begins a block
	lineCode
)

// A lineTable has the kind of each line of a document, and which lines are removed.
type lineTable struct {
	starts []int // where each line begins; one more for the end of the file
	kind   []int
	gone   []bool // removed lines
}

func (doc *document) lines() *lineTable {
	t := &lineTable{starts: []int{0}}
	if bytes.HasPrefix(doc.Src, bom) {
		t.starts[0] = len(bom)
	}
	for i, c := range doc.Src {
		if c == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}
	if t.starts[len(t.starts)-1] != len(doc.Src) {
		t.starts = append(t.starts, len(doc.Src))
	}
	t.kind, t.gone = make([]int, len(t.starts)-1), make([]bool, len(t.starts)-1)
	for _, tok := range doc.Tokens() {
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
		last-- // the token includes its own line feed
	}
	kind, before := lineCode, t.kind[first]
	switch tok.Type {
	case hclsyntax.TokenNewline, hclsyntax.TokenEOF:
		return
	case hclsyntax.TokenComment:
		kind = lineComment
		if before > lineComment { // it belongs to the content before it
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

// of returns the line of a byte.
func (t *lineTable) of(at int) int {
	return max(0, sort.Search(len(t.starts), func(i int) bool { return t.starts[i] > at })-1)
}

// remove marks the lines from top to before next as removed. It also removes a blank line next to them where two blank
// lines would meet, or one would be next to a brace or an end of the file.
func (t *lineTable) remove(top, next int) {
	for i := top; i < next; i++ {
		t.gone[i] = true
	}
	above, below := t.above(top), t.below(next)
	switch {
	case t.is(below, lineBlank) && (above < 0 || t.is(above, lineBlank) || t.is(above, lineOpen)):
		t.gone[below] = true
	case t.is(above, lineBlank) && (below >= len(t.kind) || t.is(below, lineClose)):
		t.gone[above] = true
	}
}

// above returns the last line before i that stays, -1 if there is none.
func (t *lineTable) above(i int) int {
	for i--; i >= 0 && t.gone[i]; i-- {
	}
	return i
}

// below returns the first line from i on that stays, or the number of lines.
func (t *lineTable) below(i int) int {
	for i < len(t.kind) && t.gone[i] {
		i++
	}
	return i
}

// is reports whether a line exists and has this kind.
func (t *lineTable) is(i, kind int) bool { return i >= 0 && i < len(t.kind) && t.kind[i] == kind }

// splices returns the removed lines.
func (t *lineTable) splices() (all []splice) {
	for i := 0; i < len(t.gone); i++ {
		if first := i; t.gone[i] {
			i = t.below(i)
			all = append(all, splice{from: t.starts[first], to: t.starts[i]})
		}
	}
	return all
}

// withComment returns the first line of the comment directly above line i, whose content is removed: the comment is about
// it. It returns i if there is none, or if the file begins with it.
func (t *lineTable) withComment(i int) int {
	top := i
	for t.is(top-1, lineComment) {
		if top--; t.header(top) {
			return i
		}
	}
	return top
}

// header reports whether the comments that begin at line i are the first thing in the file.
func (t *lineTable) header(i int) bool {
	if !t.is(i, lineComment) {
		return false
	}
	for above, kind := range t.kind[:i] {
		if kind != lineBlank && !t.gone[above] {
			return false
		}
	}
	return true
}
