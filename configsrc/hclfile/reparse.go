package hclfile

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A Draft's result is not parsed as a whole where that can be helped: its tree is that of the source with the lines that
// were edited parsed anew, and the very same as a parse of all of it would give. For the lexer is in its first state, with
// nothing on its stacks, wherever a line of a body begins, and reads no further than a line's end; so the tokens of a file
// are those of the lines before such a place and those of the lines behind it. A text that parses alone without a
// complaint, and ends with a line's end, leaves it in that state again. And the parser reads a body one item after the
// other, each up to its line's end, knowing nothing of the others but the names of attributes. Where any of this does not
// hold, the whole is parsed.

// A region is some lines of one body: all that an edit changes is in them.
type region struct {
	around   []*hclsyntax.Block // whose bodies they are in, from the outside in
	body     *hclsyntax.Body
	from, to hcl.Pos // each begins a line of the body
}

// An item is an attribute or a block.
type item struct {
	start, end hcl.Pos
	block      *hclsyntax.Block // nil: an attribute
}

func itemsOf(body *hclsyntax.Body) []item {
	items := make([]item, 0, len(body.Attributes)+len(body.Blocks))
	for _, a := range body.Attributes {
		items = append(items, item{a.SrcRange.Start, a.SrcRange.End, nil})
	}
	for _, b := range body.Blocks {
		items = append(items, item{b.TypeRange.Start, b.CloseBraceRange.End, b})
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.start.Byte, b.start.Byte) })
	return items
}

// region finds the lines of the innermost body that src[from:to] is in.
func (doc *document) region(from, to int) (r region, ok bool) {
	r.body = doc.body
	var start, end hcl.Pos // of the body's lines; the zero Pos where they cannot be told
	for {
		items := itemsOf(r.body)
		at := slices.IndexFunc(items, func(i item) bool { return i.end.Byte >= from })
		if at >= 0 && items[at].block != nil {
			first, last, ok := doc.bodyLines(items[at].block)
			if ok && first.Byte <= from && to <= last.Byte {
				r.around, r.body = append(r.around, items[at].block), items[at].block.Body
				start, end = first, last
				continue
			}
		}
		r.from, r.to = start, end
		for _, i := range items {
			behind, ok := doc.lineBehind(i.end)
			if !ok {
				return r, false
			}
			if behind.Byte <= from {
				r.from = behind
			}
			if behind.Byte >= to {
				r.to = behind
				break
			}
		}
		return r, r.from.Byte > 0 && r.from.Byte <= from && to <= r.to.Byte
	}
}

// bodyLines are where the first line inside a block begins, and the one that its closing brace is alone on.
func (doc *document) bodyLines(block *hclsyntax.Block) (first, last hcl.Pos, ok bool) {
	first, ok = doc.lineBehind(block.OpenBraceRange.End)
	brace := block.CloseBraceRange.Start
	start := doc.lineStart(brace.Byte)
	ok = ok && first.Byte <= start && len(bytes.Trim(doc.src[start:brace.Byte], " \t")) == 0
	return first, hcl.Pos{Line: brace.Line, Column: 1, Byte: start}, ok
}

// lineBehind is where the line behind the one begins on which something ended. ok is false where there is none, or
// more stands on the line than comments.
func (doc *document) lineBehind(at hcl.Pos) (hcl.Pos, bool) {
	end, ok := doc.skipLine(at.Byte)
	return hcl.Pos{Line: at.Line + bytes.Count(doc.src[at.Byte:end], []byte{'\n'}), Column: 1, Byte: end}, ok
}

// skipLine goes from where something has ended over blanks and comments, as the lexer does, to behind the line's end. ok
// is false where it comes upon anything else, or upon the end of the file; end is where, then.
func (s *source) skipLine(at int) (end int, ok bool) {
	for at < len(s.src) {
		rest := s.src[at:]
		switch {
		case rest[0] == ' ' || rest[0] == '\t':
			at++
		case rest[0] == '\n':
			return at + 1, true
		case bytes.HasPrefix(rest, []byte("\r\n")):
			return at + 2, true
		case rest[0] == '#' || bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				return len(s.src), false
			}
			return at + n + 1, true
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return at, false
			}
			at += n + 4
		default:
			return at, false
		}
	}
	return at, false
}

// parseEdited gives s, which is the result of d.Bytes, its tree without parsing more of it than the lines that were
// edited, and notes them in d.edited. It reports false where it cannot; s is of no use then.
func (d *Draft) parseEdited(s *source) (ok bool) {
	d.edited = nil
	if len(d.splices) == 0 || d.tail != nil || d.broken || d.body == nil {
		return false
	}
	from, to := d.splices[0].from, 0
	for _, p := range d.splices {
		to = max(to, p.to)
	}
	r, ok := d.region(from, to)
	if !ok {
		return false
	}
	grown := len(s.src) - len(d.src)
	text := s.src[r.from.Byte : r.to.Byte+grown]
	if len(text) > 0 && text[len(text)-1] != '\n' || bytes.HasPrefix(text, bom) || !s.guardEdited(d.source, text, len(r.around)) {
		return false
	}
	defer func() {
		if recover() != nil { // a fault of the parser's: the parse of the whole reports it
			ok = false
		}
	}()
	file, found := hclsyntax.ParseConfig(text, s.path, r.from)
	if len(found) > 0 {
		return false
	}
	m := mover{
		region: r, with: file.Body.(*hclsyntax.Body), bytes: grown,
		lines: bytes.Count(text, []byte{'\n'}) - bytes.Count(d.src[r.from.Byte:r.to.Byte], []byte{'\n'}),
	}
	s.body = m.edited(d.body, r.around)
	if m.failed {
		return false
	}
	s.counted, d.edited = d.counted, &r
	return true
}

// guardEdited reports whether guard would pass all of s, which it has passed as old but for text, which stands so many
// blocks deep in it.
func (s *source) guardEdited(old *source, text []byte, deep int) bool {
	if len(s.src) > MaxFileBytes {
		return false
	}
	if _, many := tokenStarts(s.src, maxTokens); many {
		return false
	}
	if _, bad := s.guardEncoding(); bad {
		return false
	}
	if _, bad := s.guardConflict(); bad {
		return false
	}
	if !old.counted {
		return roughlyFlat(s.src)
	}
	// The tokens of all else have passed. What is foreign no sound file has a token of.
	pieces := bytes.Count(s.src, []byte{'\n'}) + 2*bytes.Count(s.src, []byte{'$'}) + 2*bytes.Count(s.src, []byte{'%'})
	if melding(pieces, len(s.src)) > maxMelding {
		return false
	}
	tokens, _ := hclsyntax.LexConfig(text, s.path, hcl.InitialPos)
	c := census{depth: deep}
	for i := range tokens {
		c.count(&tokens[i], false)
		if c.depth > maxDepth || c.foreign > 0 || tokens[i].Type == hclsyntax.TokenNumberLit && len(tokens[i].Bytes) > maxNumber {
			return false
		}
	}
	return true
}

// A mover makes the tree of the result: of what stands before the region it takes the nodes themselves, which nobody
// changes, of what stands behind it copies with other positions.
type mover struct {
	region
	with         *hclsyntax.Body // what the region says now
	bytes, lines int             // by which things behind it move
	failed       bool            // the result cannot be had so
}

// edited is a body around the region, or the region's own where no further blocks are around it.
func (m *mover) edited(body *hclsyntax.Body, around []*hclsyntax.Block) *hclsyntax.Body {
	out := &hclsyntax.Body{
		Attributes: make(hclsyntax.Attributes, len(body.Attributes)+1),
		Blocks:     make(hclsyntax.Blocks, 0, len(body.Blocks)+1),
		SrcRange:   m.rng(body.SrcRange), EndRange: m.rng(body.EndRange),
	}
	for name, a := range body.Attributes {
		switch {
		case a.SrcRange.End.Byte <= m.from.Byte:
			out.Attributes[name] = a
		case a.SrcRange.Start.Byte >= m.to.Byte:
			out.Attributes[name] = m.attribute(a)
		}
	}
	if len(around) == 0 {
		for name, a := range m.with.Attributes {
			if out.Attributes[name] != nil { // set twice
				m.failed = true
			}
			out.Attributes[name] = a
		}
	}
	placed := len(around) > 0
	for _, b := range body.Blocks {
		switch {
		case len(around) > 0 && b == around[0]:
			c := *b
			c.Body, c.CloseBraceRange = m.edited(b.Body, around[1:]), m.rng(b.CloseBraceRange)
			out.Blocks = append(out.Blocks, &c)
		case b.CloseBraceRange.End.Byte <= m.from.Byte:
			out.Blocks = append(out.Blocks, b)
		case b.TypeRange.Start.Byte >= m.to.Byte:
			if !placed {
				out.Blocks, placed = append(out.Blocks, m.with.Blocks...), true
			}
			out.Blocks = append(out.Blocks, m.block(b))
		}
	}
	if !placed {
		out.Blocks = append(out.Blocks, m.with.Blocks...)
	}
	return out
}

// still reports that nothing moves.
func (m *mover) still() bool { return m.bytes == 0 && m.lines == 0 }

func (m *mover) pos(p hcl.Pos) hcl.Pos {
	if p.Byte >= m.to.Byte {
		p.Byte += m.bytes
		p.Line += m.lines
	}
	return p
}

func (m *mover) rng(r hcl.Range) hcl.Range {
	r.Start, r.End = m.pos(r.Start), m.pos(r.End)
	return r
}

func (m *mover) body(b *hclsyntax.Body) *hclsyntax.Body {
	c := *b
	c.SrcRange, c.EndRange = m.rng(b.SrcRange), m.rng(b.EndRange)
	c.Attributes = make(hclsyntax.Attributes, len(b.Attributes))
	for name, a := range b.Attributes {
		c.Attributes[name] = m.attribute(a)
	}
	c.Blocks = slices.Clone(b.Blocks) // nil where the block is on one line
	for i, inner := range b.Blocks {
		c.Blocks[i] = m.block(inner)
	}
	return &c
}

func (m *mover) block(b *hclsyntax.Block) *hclsyntax.Block {
	if m.still() {
		return b
	}
	c := *b
	c.Body = m.body(b.Body)
	c.TypeRange, c.OpenBraceRange, c.CloseBraceRange = m.rng(b.TypeRange), m.rng(b.OpenBraceRange), m.rng(b.CloseBraceRange)
	c.LabelRanges = slices.Clone(b.LabelRanges)
	for i, r := range c.LabelRanges {
		c.LabelRanges[i] = m.rng(r)
	}
	return &c
}

func (m *mover) attribute(a *hclsyntax.Attribute) *hclsyntax.Attribute {
	if m.still() {
		return a
	}
	c := *a
	c.Expr = m.expr(a.Expr)
	c.SrcRange, c.NameRange, c.EqualsRange = m.rng(a.SrcRange), m.rng(a.NameRange), m.rng(a.EqualsRange)
	return &c
}

// expr copies an expression of a sound file, which has these only.
func (m *mover) expr(e hclsyntax.Expression) hclsyntax.Expression {
	switch e := e.(type) {
	case *hclsyntax.LiteralValueExpr:
		c := *e
		c.SrcRange = m.rng(e.SrcRange)
		return &c
	case *hclsyntax.TemplateExpr:
		c := *e
		c.Parts, c.SrcRange = m.exprs(e.Parts), m.rng(e.SrcRange)
		return &c
	case *hclsyntax.TupleConsExpr:
		c := *e
		c.Exprs, c.SrcRange, c.OpenRange = m.exprs(e.Exprs), m.rng(e.SrcRange), m.rng(e.OpenRange)
		return &c
	case *hclsyntax.FunctionCallExpr:
		c := *e
		c.Args = m.exprs(e.Args)
		c.NameRange, c.OpenParenRange, c.CloseParenRange = m.rng(e.NameRange), m.rng(e.OpenParenRange), m.rng(e.CloseParenRange)
		return &c
	case *hclsyntax.ParenthesesExpr:
		c := *e
		c.Expression, c.SrcRange = m.expr(e.Expression), m.rng(e.SrcRange)
		return &c
	case *hclsyntax.UnaryOpExpr:
		c := *e
		c.Val, c.SrcRange, c.SymbolRange = m.expr(e.Val), m.rng(e.SrcRange), m.rng(e.SymbolRange)
		return &c
	}
	m.failed = true
	return e
}

func (m *mover) exprs(all []hclsyntax.Expression) []hclsyntax.Expression {
	if all == nil {
		return nil
	}
	c := make([]hclsyntax.Expression, len(all))
	for i, e := range all {
		c[i] = m.expr(e)
	}
	return c
}
