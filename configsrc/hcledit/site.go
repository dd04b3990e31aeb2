package hcledit

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
)

// A site is a block with its noted edits.
type site struct {
	d       *Draft
	block   *hclsyntax.Block
	oneLine bool // on one line in the source

	gone   bool
	label  *string                              // the new label; nil: it stays
	values map[*hclsyntax.Attribute]*expression // new values of present attributes; nil: the attribute is removed
	parts  map[*hclsyntax.Attribute][]splice    // splices within values that are not replaced as a whole
	added  []addition
	blocks []*blocks
}

// An addition is a new attribute.
type addition struct {
	name  string
	value *expression
}

// set notes a new value of an attribute, given as HCL.
func (s *site) set(name, expr string) error {
	value, err := parseExpression(name, expr)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(s.added, func(a addition) bool { return a.name == name }); at >= 0 {
		s.added[at].value = value
		return nil
	}
	attr := s.block.Body.Attributes[name]
	if attr == nil {
		s.added = append(s.added, addition{name, value})
		return nil
	}
	if s.d.isLiteral(attr.Expr) && s.d.Canonical(attr.Expr) == value.Canonical(value.expr) {
		delete(s.values, attr) // it has this value already
		return nil
	}
	s.replace(attr, value)
	return nil
}

func (s *site) replace(attr *hclsyntax.Attribute, value *expression) {
	if s.values == nil {
		s.values = map[*hclsyntax.Attribute]*expression{}
	}
	s.values[attr] = value
}

// unset notes that an attribute is removed, with the comment directly above it.
func (s *site) unset(name string) {
	attr := s.block.Body.Attributes[name]
	if attr == nil {
		return
	}
	s.replace(attr, nil)
	if s.oneLine {
		return
	}
	lines := s.d.lines()
	end, _ := s.d.nextLine(attr.Expr.Range().End.Byte)
	lines.remove(s.d.topLine(attr.NameRange.Start.Byte), lines.of(end-1)+1)
}

// goes reports whether an attribute is removed.
func (s *site) goes(attr *hclsyntax.Attribute) bool {
	value, changed := s.values[attr]
	return changed && value == nil
}

// attributes returns the present attributes that stay, in order.
func (s *site) attributes() []*hclsyntax.Attribute {
	return slices.DeleteFunc(hclfile.InOrder(s.block.Body.Attributes), s.goes)
}

// splices returns the edits inside the block and of its label. Removed lines are in the line table instead.
func (s *site) splices() (all []splice) {
	if s.gone {
		return nil
	}
	if s.label != nil {
		rng := s.block.LabelRanges[len(s.block.LabelRanges)-1]
		all = append(all, splice{rng.Start.Byte, rng.End.Byte, Quote(*s.label)})
	}
	if s.oneLine {
		return append(all, s.lineSplices()...)
	}
	for attr, value := range s.values {
		if parts, ok := s.parts[attr]; ok {
			all = append(all, parts...)
			continue
		}
		if value != nil {
			end, _ := s.d.nextLine(attr.Expr.Range().End.Byte)
			rest := bytes.TrimSpace(s.d.Src[attr.Expr.Range().End.Byte:end])
			all = append(all, s.value(attr, value, s.d.indentAt(attr.NameRange.Start.Byte), len(rest) > 0))
		}
	}
	if len(s.added) > 0 {
		indent := s.d.innerIndent(s.block)
		at, _ := s.d.nextLine(s.block.OpenBraceRange.End.Byte)
		if attrs := s.attributes(); len(attrs) > 0 {
			last := attrs[len(attrs)-1]
			indent = s.d.indentAt(last.NameRange.Start.Byte)
			at, _ = s.d.nextLine(last.Expr.Range().End.Byte)
		}
		all = append(all, splice{at, at, s.additions(indent)})
	}
	rest, next := s.nextToSiblings()
	all = append(all, next...)
	if len(rest) > 0 {
		i := s.d.after(s.block.CloseBraceRange.Start.Byte) - 1
		for i > 0 && !hclfile.EndsLine(s.d.Tokens()[i]) { // a comment on the brace's line
			i--
		}
		at := s.d.Tokens()[i].Range.End.Byte
		lines := s.d.lines()
		above := lines.above(lines.of(at))
		all = append(all, splice{at, at, s.insertions(rest, s.d.innerIndent(s.block),
			lines.is(above, lineBlank) || !s.keepsAny())})
	}
	return all
}

// nextToSiblings returns the splices of the new blocks that have a sibling of their type, which go behind the last one,
// and the other new blocks. There is a blank line before them if the last two siblings have one between them, or if the
// only one has several lines.
func (s *site) nextToSiblings() (rest []*blocks, all []splice) {
	for _, block := range s.blocks {
		var siblings []*hclsyntax.Block
		for _, b := range s.block.Body.Blocks {
			if inner := s.d.sites[b]; b.Type == block.Body.Blocks[0].Type && (inner == nil || !inner.gone) {
				siblings = append(siblings, b)
			}
		}
		n := len(siblings)
		if n == 0 {
			rest = append(rest, block)
			continue
		}
		last := siblings[n-1]
		at, ok := s.d.nextLine(last.CloseBraceRange.End.Byte)
		if !ok { // the brace of s is on the same line
			rest = append(rest, block)
			continue
		}
		apart := !s.d.oneLine(last)
		if inner := s.d.sites[last]; inner != nil && !apart { // it may get more lines
			apart = slices.ContainsFunc(inner.splices(), func(sp splice) bool { return strings.Contains(sp.text, "\n") })
		}
		if n > 1 {
			end, _ := s.d.nextLine(siblings[n-2].CloseBraceRange.End.Byte)
			apart = hasBlankLine(s.d.Src[end:max(end, s.d.lineStart(last.TypeRange.Start.Byte))])
		}
		indent := s.d.indentAt(last.TypeRange.Start.Byte)
		lead := ""
		if apart {
			lead = "\n"
		}
		all = append(all, splice{at, at, s.d.lineEnding(lead + s.insertion(block, indent))})
	}
	return rest, all
}

// keepsAny reports whether the block keeps anything but comments, apart from new blocks.
func (s *site) keepsAny() bool {
	if len(s.added) > 0 || len(s.attributes()) > 0 {
		return true
	}
	return slices.ContainsFunc(s.block.Body.Blocks, func(b *hclsyntax.Block) bool {
		inner := s.d.sites[b]
		return inner == nil || !inner.gone
	})
}

// onlyAttribute returns the text of the new attribute that an empty domain block on one line gets, and that stays on that
// line, as in a new block; "" if the block has anything else.
func (s *site) onlyAttribute(inner string) string {
	if s.block.Type != "domain" || strings.TrimSpace(inner) != "" || len(s.added) != 1 || len(s.blocks) > 0 {
		return ""
	}
	a := s.added[0]
	text := a.value.Text(a.value.expr.Range())
	if strings.Contains(text, "\n") {
		return ""
	}
	return a.name + " = " + text
}

// lineSplices returns the edits inside a block on one line. The block is split into lines if it gets more than its one
// attribute.
func (s *site) lineSplices() []splice {
	src := func(from, to int) string { return string(s.d.Src[from:to]) }
	open, shut := s.block.OpenBraceRange.End.Byte, s.block.CloseBraceRange.Start.Byte
	inner := src(open, shut)
	if only := s.onlyAttribute(inner); only != "" {
		return []splice{{open, shut, " " + only + " "}}
	}
	opens := len(s.added)+len(s.blocks) > 0
	indent := s.d.innerIndent(s.block)
	for attr, value := range s.values { // one at most
		from, to := attr.NameRange.Start.Byte, attr.Expr.Range().End.Byte
		if value == nil {
			inner = src(open, from) + src(to, shut)
			if inner = strings.TrimSpace(inner); inner != "" {
				inner = " " + inner + " "
			}
			continue
		}
		opens = opens || strings.Contains(value.Text(value.expr.Range()), "\n")
		v := s.value(attr, value, indent, strings.TrimSpace(src(to, shut)) != "")
		if !opens {
			return []splice{v}
		}
		inner = src(open, v.from) + v.text + src(v.to, shut)
	}
	if opens {
		inner = strings.Trim(inner, " \t")
		if inner != "" {
			inner = indent + inner + s.d.eol
		}
		bare := inner == "" && len(s.added) == 0
		inner = s.d.eol + inner + s.additions(indent) + s.insertions(s.blocks, indent, bare) +
			s.d.indentAt(s.block.TypeRange.Start.Byte)
	} else if len(s.values) == 0 {
		return nil
	}
	return []splice{{open, shut, inner}}
}

// value returns the splice of a new value. more says that something follows the old one on its line.
func (s *site) value(attr *hclsyntax.Attribute, value *expression, indent string, more bool) splice {
	rng := attr.Expr.Range()
	text, ok := s.d.inFormOf(attr.Expr, value)
	if !ok {
		text = value.indented(indent, s.d.step(s.block))
	}
	// Comments in the parentheses around a value stay.
	if inner := hclfile.Unparen(attr.Expr).Range(); !strings.Contains(text, "\n") ||
		mayComment(s.d.Src[rng.Start.Byte:inner.Start.Byte]) || mayComment(s.d.Src[inner.End.Byte:rng.End.Byte]) {
		more = more || rng != inner
		rng = inner
	}
	if more && (value.endsInHeredoc || ok && !strings.HasSuffix(text, ")")) {
		text = "(" + text + "\n" + indent + ")" // nothing may follow a heredoc's last line, not even a comment
	}
	end := rng.End.Byte
	if old := s.d.Src[rng.Start.Byte:end]; !strings.Contains(text, "\n") && !bytes.Contains(old, []byte{'\n'}) {
		blanks := len(s.d.Src[end:]) - len(bytes.TrimLeft(s.d.Src[end:], " "))
		if rest := s.d.Src[end+blanks:]; blanks > 1 && (bytes.HasPrefix(rest, []byte("#")) ||
			bytes.HasPrefix(rest, []byte("//"))) { // keep the comment in its column
			shift := utf8.RuneCount(old) - utf8.RuneCountInString(text)
			text, end = text+strings.Repeat(" ", max(1, blanks+shift)), end+blanks
		}
	}
	return splice{rng.Start.Byte, end, s.d.lineEnding(text)}
}

// additions returns the lines of the new attributes.
func (s *site) additions(indent string) string {
	step := s.d.step(s.block)
	var b strings.Builder
	columns := s.columns()
	for _, a := range s.added {
		pad := 0
		if n := len(columns); n > 0 && (n == 1 || columns[n-1] == columns[n-2] || columns[n-2] < 0) {
			pad = max(0, columns[n-1]-len(a.name)-1)
		}
		columns = append(columns, len(a.name)+pad+1)
		b.WriteString(indent + a.name + strings.Repeat(" ", pad) + " = " + a.value.indented(indent, step) + "\n")
	}
	return s.d.lineEnding(b.String())
}

// columns returns the distances from name to equals sign of the last two attributes, by which new attributes are
// aligned; -1 means that the first of the two is not directly above the second.
func (s *site) columns() (columns []int) {
	attrs := s.attributes()
	for i, a := range attrs[max(0, len(attrs)-2):] {
		columns = append(columns, a.EqualsRange.Start.Column-a.NameRange.Start.Column)
		if i > 0 && attrs[len(attrs)-2].Expr.Range().End.Line != a.NameRange.Start.Line-1 {
			columns[0] = -1
		}
	}
	return columns
}

// insertions returns the text of new blocks, those of a type next to each other: with a blank line between if the first
// one has several lines. Before the blocks of a type is one, too; bare omits the first.
func (s *site) insertions(all []*blocks, indent string, bare bool) string {
	var b strings.Builder
	byType := map[string][]*blocks{}
	for _, block := range all {
		typ := block.Body.Blocks[0].Type
		byType[typ] = append(byType[typ], block)
	}
	for _, block := range all {
		typ := block.Body.Blocks[0].Type
		same := byType[typ]
		for i, block := range same {
			if i == 0 && (b.Len() > 0 || !bare) || i > 0 && !same[0].oneLine(same[0].Body.Blocks[0]) {
				b.WriteString("\n")
			}
			b.WriteString(s.insertion(block, indent))
		}
		delete(byType, typ)
	}
	return s.d.lineEnding(b.String())
}

func (s *site) insertion(block *blocks, indent string) string {
	text := indentLines(block.stepped(s.d.step(s.block)), indent, true)
	if !block.saidBy(text) { // heredocs in the text do not survive this indentation
		text = indentLines(block.trimmed(), indent, true)
	}
	if !block.saidBy(text) {
		text = block.trimmed()
	}
	return text
}
