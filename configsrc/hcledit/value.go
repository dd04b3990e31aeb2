package hcledit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
)

// An expression is a new value, parsed.
type expression struct {
	*hclfile.Source
	expr          hclsyntax.Expression
	endsInHeredoc bool
}

// parseExpression reads the text of a value, which must be one expression without comments.
func parseExpression(name, text string) (*expression, error) {
	if !hclsyntax.ValidIdentifier(name) {
		return nil, fmt.Errorf("%w: %s is no attribute name", ErrVerify, hclfile.Quoted(name))
	}
	text = strings.ReplaceAll(strings.TrimRight(text, " \t\r\n"), "\r\n", "\n")
	doc, err := openDocument([]byte("x = " + text + "\n"))
	if err != nil {
		return nil, fmt.Errorf("%w: the value of %s: %w", ErrVerify, name, err)
	}
	attr := doc.Body.Attributes["x"]
	if attr == nil || len(doc.Body.Attributes) != 1 || len(doc.Body.Blocks) != 0 {
		return nil, fmt.Errorf("%w: the value of %s is no single expression", ErrVerify, name)
	}
	e := &expression{Source: doc.Source, expr: attr.Expr}
	if !mayComment(doc.Src) && !strings.Contains(text, "<<") {
		return e, nil
	}
	for i, tok := range doc.Tokens() {
		if tok.Type == hclsyntax.TokenComment {
			return nil, fmt.Errorf("%w: the value of %s holds a comment", ErrVerify, name)
		}
		if tok.Type == hclsyntax.TokenCHeredoc {
			e.endsInHeredoc = i+1 < len(doc.Tokens()) && tok.Range.End.Byte == attr.Expr.Range().End.Byte
		}
	}
	return e, nil
}

// mayComment reports whether a text may hold a comment. It is true for some texts that hold none.
func mayComment(text []byte) bool {
	for i, c := range text {
		if c == '#' || c == '/' && i+1 < len(text) && (text[i+1] == '/' || text[i+1] == '*') {
			return true
		}
	}
	return false
}

// indented returns the expression's text with all lines but the first indented, and the text of a <<- heredoc by one
// step more. The text of a << heredoc stays unchanged.
func (e *expression) indented(indent, step string) string {
	text := e.Text(e.expr.Range())
	if !strings.Contains(text, "\n") {
		return text
	}
	if s, ok := strings.CutPrefix(e.Canonical(e.expr), "string "); ok && strings.Contains(text, "<<-") {
		again := heredocForm(step).write(s)
		if other, err := parseExpression("x", again); err == nil && other.Canonical(other.expr) == "string "+s {
			text = again
		}
	}
	if indent == "" {
		return text
	}
	moved := indentLines(text, indent, false)
	if again, err := parseExpression("x", moved); err == nil && again.Canonical(again.expr) == e.Canonical(e.expr) {
		return moved
	}
	return text
}

// indentLines puts indent before every line that is not blank and does not begin inside a quoted string or a heredoc
// that keeps its indentation. first includes the first line.
func indentLines(text, indent string, first bool) string {
	src := []byte(text)
	tokens, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos)
	type span struct{ from, to int }
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
