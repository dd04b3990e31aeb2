package hclfile

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// An Attribute is what stands in a file for one name.
type Attribute struct {
	// Call is the function that gives the value: "env", "file", "sealed" or "trimsuffix", "?" for what is no literal at
	// all, and "" for a plain literal. Text by trimsuffix may be overwritten as a literal may.
	Call string
	Text string // the expression as it is written; may hold a secret
	Pos  Pos    // of the expression
}

// FindAttribute looks at one attribute. ok is false when the block is there and the attribute is not; a missing block is
// ErrNoBlock.
func FindAttribute(src []byte, at BlockPath, name string) (a Attribute, ok bool, err error) {
	doc, err := openDocument(src)
	if err != nil {
		return a, false, err
	}
	block, err := doc.find(at)
	if err != nil {
		return a, false, err
	}
	attr := block.Body.Attributes[name]
	if attr == nil {
		return a, false, nil
	}
	a = Attribute{Text: doc.text(attr.Expr.Range()), Pos: position(attr.Expr.Range().Start)}
	if call, isCall := unparen(attr.Expr).(*hclsyntax.FunctionCallExpr); isCall {
		a.Call = call.Name
	} else if !doc.isLiteral(attr.Expr) {
		a.Call = "?"
	}
	return a, true, nil
}

// SetAttribute gives an attribute a new value: expr is HCL, as Quote, Literal or a caller's own hand writes it. Where
// the attribute stands already, only the bytes of its value change, and none at all if it says the same already;
// otherwise it comes on a line of its own after the block's last attribute. A block on one line is opened up first
// where that is needed.
func SetAttribute(src []byte, at BlockPath, name, expr string) ([]byte, error) {
	doc, err := openDocument(src)
	if err != nil {
		return nil, err
	}
	value, err := parseExpression(name, expr)
	if err != nil {
		return nil, err
	}
	block, err := doc.find(at)
	if err != nil {
		return nil, err
	}
	before := doc.model()
	key, canonical := attributeKey(before.keys[block], name), value.canonical(value.expr)
	attr := block.Body.Attributes[name]
	if attr != nil && before.says[key] == canonical && doc.isLiteral(attr.Expr) {
		return src, nil
	}
	if doc.oneLine(block) && (attr == nil || strings.Contains(expr, "\n")) {
		if doc, err = doc.openUp(block); err != nil {
			return nil, err
		}
		if block, err = doc.find(at); err != nil {
			return nil, err
		}
		attr = block.Body.Attributes[name]
	}
	var after []byte
	if attr != nil {
		after = doc.replaceValue(block, attr, value)
	} else {
		after = doc.addAttribute(block, name, value)
	}
	want := maps.Clone(before.says)
	want[key] = canonical
	return verified(after, want, keeps(before.comments))
}

// RemoveAttribute takes an attribute out, with its line. What is not there needs no removing.
func RemoveAttribute(src []byte, at BlockPath, name string) ([]byte, error) {
	doc, err := openDocument(src)
	if err != nil {
		return nil, err
	}
	block, err := doc.find(at)
	if err != nil {
		return nil, err
	}
	attr := block.Body.Attributes[name]
	if attr == nil {
		return src, nil
	}
	var after []byte
	if doc.oneLine(block) {
		open, shut := block.OpenBraceRange.End.Byte, block.CloseBraceRange.Start.Byte
		rest := strings.TrimSpace(doc.between(open, attr.NameRange.Start.Byte) + doc.between(attr.Expr.Range().End.Byte, shut))
		if rest != "" {
			rest = " " + rest + " "
		}
		after = doc.splice(open, shut, rest)
	} else {
		lines := doc.lines()
		end, _ := doc.nextLine(attr.Expr.Range().End.Byte)
		top, next := lines.closeGap(lines.of(attr.NameRange.Start.Byte), lines.of(end-1)+1)
		after = doc.splice(lines.start(top), lines.start(next), "")
	}
	before := doc.model()
	want := maps.Clone(before.says)
	delete(want, attributeKey(before.keys[block], name))
	return verified(after, want, noneNew(before.comments))
}

// RenameLabel replaces the label of a block.
func RenameLabel(src []byte, at BlockPath, label string) ([]byte, error) {
	doc, err := openDocument(src)
	if err != nil {
		return nil, err
	}
	block, err := doc.find(at)
	if err != nil {
		return nil, err
	}
	n := len(block.LabelRanges)
	if n == 0 {
		return nil, fmt.Errorf("rename: a %s block has no label", block.Type)
	}
	if block.Labels[n-1] == label {
		return src, nil
	}
	rng := block.LabelRanges[n-1]
	after := doc.splice(rng.Start.Byte, rng.End.Byte, Quote(label))
	before := doc.model()
	old := before.keys[block]
	renamed := strings.TrimSuffix(old, block.Labels[n-1]) + label
	if _, taken := before.says[renamed]; taken {
		return nil, fmt.Errorf("rename to %s: %w", quoted(label), ErrExists)
	}
	want := map[string]string{}
	for k, v := range before.says {
		if rest, inside := strings.CutPrefix(k, old); inside && (rest == "" || rest[:1] == sep) {
			k = renamed + rest
		}
		want[k] = v
	}
	return verified(after, want, keeps(before.comments))
}

// between is the source text from one byte to another.
func (doc *document) between(from, to int) string { return string(doc.src[from:to]) }

// openUp puts the content of a block on one line onto lines of its own.
func (doc *document) openUp(block *hclsyntax.Block) (*document, error) {
	open, shut := block.OpenBraceRange.End.Byte, block.CloseBraceRange.Start.Byte
	text := doc.eol
	if inner := strings.Trim(doc.between(open, shut), " \t"); inner != "" {
		text += doc.innerIndent(block) + inner + doc.eol
	}
	return openDocument(doc.splice(open, shut, text+doc.indentAt(block.TypeRange.Start.Byte)))
}

// replaceValue changes the bytes of a value.
func (doc *document) replaceValue(block *hclsyntax.Block, attr *hclsyntax.Attribute, value *expression) []byte {
	rng := attr.Expr.Range()
	indent := doc.indentAt(attr.NameRange.Start.Byte)
	text, ok := doc.inFormOf(attr.Expr, value)
	if !ok {
		text = value.indented(indent, doc.step(block))
	}
	if !strings.Contains(text, "\n") {
		rng = unparen(attr.Expr).Range() // what else stands in the parentheses stays
	}
	end, hasLine := doc.nextLine(rng.End.Byte)
	if value.endsInHeredoc || ok && !strings.HasSuffix(text, ")") {
		switch rest := bytes.TrimSpace(doc.src[rng.End.Byte:end]); {
		case len(rest) > 0: // nothing may follow the heredoc's last line, not even a comment
			text = "(" + text + "\n" + indent + ")"
		case !hasLine:
			text += "\n"
		}
	}
	return doc.splice(rng.Start.Byte, rng.End.Byte, doc.lineEnding(text))
}

// addAttribute puts a new attribute on its own line.
func (doc *document) addAttribute(block *hclsyntax.Block, name string, value *expression) []byte {
	indent, pad := doc.innerIndent(block), ""
	at, hasLine := doc.nextLine(block.OpenBraceRange.End.Byte)
	if attrs := inOrder(block.Body.Attributes); len(attrs) > 0 {
		last := attrs[len(attrs)-1]
		indent = doc.indentAt(last.NameRange.Start.Byte)
		at, hasLine = doc.nextLine(last.Expr.Range().End.Byte)
		pad = strings.Repeat(" ", max(0, doc.column(attrs)-len(name)-1))
	}
	text := indent + name + pad + " = " + value.indented(indent, doc.step(block)) + "\n"
	if !hasLine {
		text = "\n" + text
	}
	return doc.splice(at, at, doc.lineEnding(text))
}

// column is how far the equals sign stands from the beginning of the name where attributes are aligned, as the formatter
// does it; 0 where their author did not.
func (doc *document) column(attrs []*hclsyntax.Attribute) int {
	offset := func(a *hclsyntax.Attribute) int { return a.EqualsRange.Start.Column - a.NameRange.Start.Column }
	last := attrs[len(attrs)-1]
	if len(attrs) > 1 {
		if above := attrs[len(attrs)-2]; above.Expr.Range().End.Line == last.NameRange.Start.Line-1 && offset(above) != offset(last) {
			return 0
		}
	}
	return offset(last)
}

// An expression is a value that is to be written.
type expression struct {
	*source
	expr          hclsyntax.Expression
	endsInHeredoc bool
}

// parseExpression reads the text of a value, which must be one expression without comments.
func parseExpression(name, text string) (*expression, error) {
	if !hclsyntax.ValidIdentifier(name) {
		return nil, fmt.Errorf("%w: %s is no attribute name", ErrVerify, quoted(name))
	}
	text = strings.ReplaceAll(strings.TrimRight(text, " \t\r\n"), "\r\n", "\n")
	doc, err := openDocument([]byte("x = " + text + "\n"))
	if err != nil {
		return nil, fmt.Errorf("%w: the value of %s: %w", ErrVerify, name, err)
	}
	attr := doc.body.Attributes["x"]
	if attr == nil || len(doc.body.Attributes) != 1 || len(doc.body.Blocks) != 0 {
		return nil, fmt.Errorf("%w: the value of %s is no single expression", ErrVerify, name)
	}
	e := &expression{source: doc.source, expr: attr.Expr}
	for i, tok := range doc.tokens() {
		if tok.Type == hclsyntax.TokenComment {
			return nil, fmt.Errorf("%w: the value of %s holds a comment", ErrVerify, name)
		}
		if tok.Type == hclsyntax.TokenCHeredoc {
			e.endsInHeredoc = i+1 < len(doc.tokens()) && tok.Range.End.Byte == attr.Expr.Range().End.Byte
		}
	}
	return e, nil
}

// indented is the expression's text with its further lines indented, the text of a heredoc by one step more. Lines of a
// heredoc that keeps its indentation stay.
func (e *expression) indented(indent, step string) string {
	text := e.text(e.expr.Range())
	if !strings.Contains(text, "\n") {
		return text
	}
	if s, ok := strings.CutPrefix(e.canonical(e.expr), "string "); ok && strings.Contains(text, "<<-") {
		again := heredocForm(step).write(s)
		if other, err := parseExpression("x", again); err == nil && other.canonical(other.expr) == "string "+s {
			text = again
		}
	}
	if indent == "" {
		return text
	}
	moved := indentLines(text, indent, false)
	if again, err := parseExpression("x", moved); err == nil && again.canonical(again.expr) == e.canonical(e.expr) {
		return moved
	}
	return text
}

// indentLines puts indent before every line (but the first, unless told so) that is not blank and does not begin inside a
// quoted string or a heredoc that keeps its indentation.
func indentLines(text, indent string, first bool) string {
	src := []byte(text)
	tokens, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos)
	var fixed []span // bytes whose line beginnings are content
	for i, tok := range tokens {
		if tok.Type == hclsyntax.TokenOHeredoc && !bytes.HasPrefix(tok.Bytes, []byte("<<-")) {
			end := len(src)
			for _, t := range tokens[i:] {
				if t.Type == hclsyntax.TokenCHeredoc {
					end = t.Range.End.Byte
					break
				}
			}
			fixed = append(fixed, span{tok.Range.Start.Byte + 1, end})
		}
		if tok.Type == hclsyntax.TokenComment && bytes.Contains(bytes.TrimSuffix(tok.Bytes, []byte{'\n'}), []byte{'\n'}) {
			fixed = append(fixed, span{tok.Range.Start.Byte + 1, tok.Range.End.Byte})
		}
	}
	var b strings.Builder
	at := 0
	for line := range strings.Lines(text) {
		content := strings.TrimRight(line, "\r\n") == ""
		for _, f := range fixed {
			content = content || at >= f.from && at < f.to
		}
		if !content && (at > 0 || first) {
			b.WriteString(indent)
		}
		b.WriteString(line)
		at += len(line)
	}
	return b.String()
}
