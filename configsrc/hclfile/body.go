package hclfile

import (
	"bytes"
	"math/big"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A list is a list of strings, as far as they could be read, with the position of each; a catalog.Field may point to
// one.
type list struct {
	values []string
	ranges []hcl.Range
}

// A content is the attributes read from one block.
type content struct {
	block  *hclsyntax.Block
	schema *schema
	said   catalog.FieldSet // written and read
	bad    catalog.FieldSet // written, but reported already
}

func (c *content) wrote(i int) bool { return i >= 0 && (c.said.Has(i) || c.bad.Has(i)) }

// attributes reads a block's attributes into fields, which go with schema.attrs by index. It reports blocks inside a
// block that has none.
func (d *decoder) attributes(block *hclsyntax.Block, s *schema, fields []catalog.Field) *content {
	c := &content{block: block, schema: s}
	for _, attr := range InOrder(block.Body.Attributes) {
		i := slices.Index(s.attrs, attr.Name)
		switch {
		case i < 0:
			d.unknownAttribute(attr, s)
		case attr.SrcRange.End.Byte > d.sound: // the parser has reported the error
			c.bad = c.bad.With(i)
		case attr.Expr != nil && d.attribute(attr, fields[i]):
			c.said = c.said.With(i)
		default:
			c.bad = c.bad.With(i)
		}
	}
	if s.blocks == nil {
		for _, b := range block.Body.Blocks {
			d.unknownBlock(b, s)
		}
	}
	return c
}

// InOrder sorts by position: the parser keeps a map.
func InOrder(attrs hclsyntax.Attributes) []*hclsyntax.Attribute {
	sorted := make([]*hclsyntax.Attribute, 0, len(attrs))
	for _, a := range attrs {
		if a != nil {
			sorted = append(sorted, a)
		}
	}
	slices.SortFunc(sorted, func(a, b *hclsyntax.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte })
	return sorted
}

// attribute reads one attribute and reports what is wrong with its kind.
func (d *decoder) attribute(attr *hclsyntax.Attribute, f catalog.Field) bool {
	switch to := f.Value.(type) {
	case *string:
		text, ok := d.stringValue(attr.Name, attr.Expr, wantString)
		*to = text
		// here and not in Validate, because this can make a suggestion
		if ok && f.OneOf != nil && !slices.Contains(f.OneOf, text) {
			d.errorf(attr.Expr.Range(), attr.Name+": must be one of "+strings.Join(f.OneOf, ", "), "%s", didYouMean(text,
				f.OneOf))
			return false
		}
		return ok
	case **string:
		if v, ok := d.literal(attr.Expr); ok && v == (value{}) {
			*to = nil
			return true
		}
		text, ok := d.stringValue(attr.Name, attr.Expr, wantString)
		*to = &text
		return ok
	case **bool:
		if v, ok := d.literal(attr.Expr); ok && v == (value{}) {
			*to = nil
			return true
		}
		*to = new(bool)
		return d.boolValue(attr, *to)
	case *bool:
		return d.boolValue(attr, to)
	case *int:
		return d.intValue(attr, to)
	case *catalog.Secret:
		return d.secret(attr.Name, attr.Expr, to)
	case *[]catalog.Secret:
		return d.secretsValue(attr, to)
	case *body:
		return d.bodyValue(attr, to)
	case *list:
		return d.listValue(attr, to)
	case *[]string:
		return d.textsValue(attr, f, to)
	case *[]catalog.Label:
		return d.labelsValue(attr, to)
	}
	panic("hclfile: a Field of a type that no case handles: impossible while Fields and this switch agree")
}

func (d *decoder) boolValue(attr *hclsyntax.Attribute, to *bool) bool {
	v, ok := d.literal(attr.Expr)
	if !ok || v.boolean == nil {
		d.mismatch(attr.Name, attr.Expr, wantBool)
		return false
	}
	*to = *v.boolean
	return true
}

// stringValue reads a literal string, a heredoc, or one in trimsuffix().
func (d *decoder) stringValue(name string, expr hclsyntax.Expression, want string) (string, bool) {
	if call, ok := Unparen(expr).(*hclsyntax.FunctionCallExpr); ok && call.Name == "trimsuffix" {
		return d.trimmed(call)
	}
	v, ok := d.literal(expr)
	if !ok || v.text == nil {
		d.mismatch(name, expr, want)
		return "", false
	}
	return *v.text, true
}

func (d *decoder) intValue(attr *hclsyntax.Attribute, to *int) bool {
	v, ok := d.literal(attr.Expr)
	if !ok || v.number == nil {
		d.mismatch(attr.Name, attr.Expr, wantInt)
		return false
	}
	// Never print the number: one such as 1e10000000 has ten million digits.
	n, accuracy := v.number.Int64()
	switch {
	case accuracy != big.Exact && v.number.IsInt():
		d.errorf(attr.Expr.Range(), attr.Name+": the number is too large", "")
		return false
	case accuracy != big.Exact:
		d.errorf(attr.Expr.Range(), "attribute "+Quoted(attr.Name)+" wants a whole number, found a fraction", "")
		return false
	}
	*to = int(n)
	return true
}

func (d *decoder) listValue(attr *hclsyntax.Attribute, to *list) bool {
	tuple, ok := Unparen(attr.Expr).(*hclsyntax.TupleConsExpr)
	if !ok {
		d.mismatch(attr.Name, attr.Expr, wantList)
		return false
	}
	to.values = make([]string, 0, len(tuple.Exprs))
	for _, e := range tuple.Exprs {
		text, textOK := d.stringValue(attr.Name, e, "strings in its list")
		if !textOK {
			ok = false
			continue
		}
		to.values = append(to.values, text)
		to.ranges = append(to.ranges, e.Range())
	}
	return ok
}

// textsValue reads a list of strings, in which file("…") may stand where the field has Files.
func (d *decoder) textsValue(attr *hclsyntax.Attribute, f catalog.Field, to *[]string) bool {
	tuple, ok := Unparen(attr.Expr).(*hclsyntax.TupleConsExpr)
	if !ok {
		d.mismatch(attr.Name, attr.Expr, wantList)
		return false
	}
	list := make([]string, 0, len(tuple.Exprs))
	for _, e := range tuple.Exprs {
		text, read := d.element(attr.Name, e, f)
		switch {
		case !read:
		case f.OneOf != nil && !slices.Contains(f.OneOf, text):
			d.errorf(e.Range(), attr.Name+": must be one of "+strings.Join(f.OneOf, ", "), "%s", didYouMean(text, f.OneOf))
		case f.OneOf != nil && slices.Contains(list, text):
			d.errorf(e.Range(), attr.Name+": "+Quoted(text)+" is in the list twice", "")
		default:
			list = append(list, text)
		}
	}
	*to = list
	return len(list) == len(tuple.Exprs)
}

func (d *decoder) element(name string, e hclsyntax.Expression, f catalog.Field) (text string, ok bool) {
	if call, is := Unparen(e).(*hclsyntax.FunctionCallExpr); f.Files && is && call.Name == "file" {
		if text, ok = d.argument(call); !ok {
			return "", false
		}
		if msg := checkPath(text); msg != "" {
			d.errorf(call.Args[0].Range(), msg, "")
			return "", false
		}
		return catalog.FileText(text), true
	}
	if text, ok = d.stringValue(name, e, "strings in its list"); !ok || !f.Files {
		return text, ok
	}
	if _, file := catalog.FilePath(text); file {
		d.errorf(e.Range(), name+": file(…) stands in quotes", `write file("path") without quotes around it`)
		return "", false
	}
	return text, true
}

// unknownAttribute reports an attribute that the block does not have, and where it belongs.
func (d *decoder) unknownAttribute(attr *hclsyntax.Attribute, s *schema) {
	detail := ""
	if slices.Contains(s.blocks, attr.Name) {
		detail = Quoted(attr.Name) + " is a block: write " + schemaOf(attr.Name).sample + " … }, without an equals sign"
	} else if detail = didYouMean(attr.Name, s.attrs); detail == "" {
		if where := owners(attr.Name); where != "" {
			detail = "it belongs into " + where
		} else if s.attrs == nil {
			detail = "a " + orFile(s.typ) + " holds blocks only: " + strings.Join(s.blocks, ", ")
		} else {
			detail = "a " + orFile(s.typ) + " has " + strings.Join(s.attrs, ", ")
		}
	}
	d.errorf(attr.NameRange, "unknown attribute "+Quoted(attr.Name), "%s", detail)
}

// unknownBlock reports a block that is not allowed in one of schema s.
func (d *decoder) unknownBlock(block *hclsyntax.Block, s *schema) {
	summary, detail := "unknown block "+Quoted(block.Type), ""
	if slices.Contains(s.attrs, block.Type) {
		detail = Quoted(block.Type) + " is an attribute: write " + block.Type + " = …"
	} else if where := parents(block.Type); where != "" {
		summary = "a " + block.Type + " block cannot stand here"
		detail = "it stands " + where
	} else if detail = didYouMean(block.Type, s.blocks); detail == "" {
		if len(s.blocks) > 0 {
			detail = "a " + orFile(s.typ) + " may hold the blocks " + strings.Join(s.blocks, ", ")
		} else {
			detail = "a " + s.typ + " block holds no blocks"
		}
	}
	d.errorf(block.TypeRange, summary, "%s", detail)
}

func orFile(typ string) string {
	if typ == "" {
		return "file"
	}
	return typ + " block"
}

// label returns the block's one label, or reports that there is none or another number.
func (d *decoder) label(block *hclsyntax.Block, s *schema) (string, hcl.Range) {
	n := len(block.Labels)
	switch {
	case s.label == "" && n > 0:
		d.errorf(block.LabelRanges[0], "a "+s.typ+" block has no label", "write %s … }", s.sample)
	case s.label != "" && n == 0:
		d.errorf(block.TypeRange, "a "+s.typ+" block needs a label: "+s.label, "write %s … }", s.sample)
	case n > 1:
		d.errorf(block.LabelRanges[1], "a "+s.typ+" block has one label only: "+s.label, "write %s … }", s.sample)
	}
	if s.label == "" || n == 0 {
		return "", block.TypeRange
	}
	return block.Labels[0], block.LabelRanges[0]
}

// header returns the range of the block's type and labels.
func header(block *hclsyntax.Block) hcl.Range {
	if n := len(block.LabelRanges); n > 0 {
		return hcl.RangeBetween(block.TypeRange, block.LabelRanges[n-1])
	}
	return block.TypeRange
}

// validated turns the problems of a noun's Validate into diagnostics: at the attribute, at the label, or at the block's
// header for a missing one. label is the field that the label holds.
func (d *decoder) validated(c *content, ps catalog.Problems, label string) {
	for _, p := range ps {
		name, i := c.schema.attribute(p.Path)
		severity := Error
		if p.Warning {
			severity = Warning
		}
		switch {
		case i >= 0 && c.bad.Has(i):
		case i >= 0 && c.said.Has(i):
			rng, exact := d.inside(c.block.Body.Attributes[name].Expr, p)
			message := p.Message
			if exact { // the file's line and column are better than the value's
				_, message, _ = strings.Cut(message, ": ")
			}
			d.add(severity, "", rng, name+": "+message, "")
		case i >= 0:
			d.atHeader(c, severity, "attribute "+Quoted(name)+" is missing", name+" "+p.Message)
		case p.Path == label && len(c.block.LabelRanges) > 0:
			d.add(severity, "", c.block.LabelRanges[0], label+": "+p.Message, "")
		case p.Path == label && label != "": // the missing label was reported
		default:
			d.atHeader(c, severity, c.schema.typ+" "+p.Message, "")
		}
	}
}

// atHeader reports a missing part of a block. In a block that was not read to its end nothing counts as missing.
func (d *decoder) atHeader(c *content, severity Severity, summary, detail string) {
	if c.block.CloseBraceRange.End.Byte <= d.sound {
		d.add(severity, "", header(c.block), summary, detail)
	}
}

// inside narrows an attribute's range down to the bytes of its value that a problem is about. exact reports whether
// that succeeded.
func (d *decoder) inside(e hclsyntax.Expression, p catalog.Problem) (rng hcl.Range, exact bool) {
	rng = e.Range()
	if p.End == 0 {
		return rng, false
	}
	if call, ok := Unparen(e).(*hclsyntax.FunctionCallExpr); ok && len(call.Args) == 2 { // trimsuffix
		e = call.Args[0]
	}
	t, ok := Unparen(e).(*hclsyntax.TemplateExpr)
	if !ok {
		return rng, false
	}
	text, ok := d.literalText(t)
	if !ok || p.End > len(text) {
		return rng, false
	}
	if d.isHeredoc(t) {
		return d.insideHeredoc(t, text, p)
	}
	// Escaped text has other bytes in the file: all bytes before must equal the value's, or all bytes after.
	at, end := t.Range().Start.Byte+1, min(t.Range().End.Byte-1, len(d.Src))
	switch {
	case bytes.HasPrefix(d.Src[at:], []byte(text[:p.End])):
		return d.rangeAt(at+p.Start, at+p.End), true
	case at <= end && bytes.HasSuffix(d.Src[at:end], []byte(text[p.Start:])):
		at = end - len(text)
		return d.rangeAt(at+p.Start, at+p.End), true
	}
	return rng, false
}

// insideHeredoc is inside for a heredoc with this text. If the line contains escapes, the result is the whole line.
func (d *decoder) insideHeredoc(t *hclsyntax.TemplateExpr, text string, p catalog.Problem) (rng hcl.Range, exact bool) {
	start := d.lineEnd(t.Range().Start.Byte) + 1
	for range strings.Count(text[:p.Start], "\n") {
		if start >= len(d.Src) {
			return t.Range(), false
		}
		start = d.lineEnd(start) + 1
	}
	if start >= min(t.Range().End.Byte, len(d.Src)) {
		return t.Range(), false
	}
	end := d.lineEnd(start)
	if end > start && d.Src[end-1] == '\r' {
		end--
	}
	from := strings.LastIndexByte(text[:p.Start], '\n') + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	// the text before has lost its indentation, and escapes
	if bytes.HasSuffix(d.Src[start:end], []byte(line[p.Start-from:])) {
		start = end - len(line)
		return d.rangeAt(start+p.Start-from, min(start+p.End-from, end)), true
	}
	for start < end && (d.Src[start] == ' ' || d.Src[start] == '\t') {
		start++
	}
	return d.rangeAt(start, end), false
}
