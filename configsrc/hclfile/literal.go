package hclfile

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

const (
	literalsOnly   = "references and expressions are not allowed: what a file says must be seen in that file"
	escapeTemplate = "${ and %{ begin an expression, which is not allowed here; to have the characters themselves, " +
		"write $${ and %%{"
)

// A value is the value of a literal syntax node. Exactly one of the members is set, or none for null.
type value struct {
	text    *string
	number  *big.Float
	boolean *bool
}

// Unparen removes parentheses. They nest no deeper than maxDepth.
func Unparen(e hclsyntax.Expression) hclsyntax.Expression {
	for {
		p, ok := e.(*hclsyntax.ParenthesesExpr)
		if !ok {
			return e
		}
		e = p.Expression
	}
}

// literal reads a literal node by its kind. Nothing is evaluated: 22 bytes of an expression can keep a core busy for
// half a minute.
func (s *Source) literal(e hclsyntax.Expression) (v value, ok bool) {
	switch e := Unparen(e).(type) {
	case *hclsyntax.TemplateExpr:
		text, ok := s.literalText(e)
		return value{text: &text}, ok
	case *hclsyntax.LiteralValueExpr:
		switch val := e.Val; {
		case !val.IsKnown() || val.IsMarked():
			return value{}, false
		case val.IsNull():
			return value{}, true
		case val.Type() == cty.Number:
			return value{number: val.AsBigFloat()}, true
		case val.Type() == cty.Bool:
			b := val.True()
			return value{boolean: &b}, true
		}
	case *hclsyntax.UnaryOpExpr:
		number, isLiteral := e.Val.(*hclsyntax.LiteralValueExpr)
		if !isLiteral || e.Op != hclsyntax.OpNegate {
			return value{}, false
		}
		if v, ok := s.literal(number); ok && v.number != nil {
			return value{number: new(big.Float).Neg(v.number)}, true
		}
	}
	return value{}, false // the parser turns strings into templates
}

// literalText joins a template's parts if all of them are plain text. The lines of a heredoc end like those of the
// file; they are read as LF, so that a checkout with CRLF has the same value.
func (s *Source) literalText(e *hclsyntax.TemplateExpr) (string, bool) {
	parts := make([]string, len(e.Parts))
	for i, p := range e.Parts {
		l, ok := p.(*hclsyntax.LiteralValueExpr)
		if !ok || !l.Val.IsKnown() || l.Val.IsNull() || l.Val.Type() != cty.String {
			return "", false // a number or bool from an interpolation
		}
		parts[i] = s.exactText(l, s.isHeredoc(e))
	}
	text := strings.Join(parts, "")
	if s.isHeredoc(e) {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	return text, true
}

// isHeredoc reports whether an expression is a heredoc.
func (s *Source) isHeredoc(e hclsyntax.Expression) bool {
	t, ok := e.(*hclsyntax.TemplateExpr)
	return ok && t.SrcRange.Start.Byte < len(s.Src) && s.Src[t.SrcRange.Start.Byte] == '<'
}

// sep separates the parts of a list or call in its canonical form. It cannot occur in a file.
const sep = "\x00"

// Canonical returns an expression's value with its kind, or its text if the language does not know it.
func (s *Source) Canonical(e hclsyntax.Expression) string {
	e = Unparen(e)
	switch e := e.(type) {
	case *hclsyntax.ObjectConsExpr:
		return s.canonicalMap(e)
	case *hclsyntax.TupleConsExpr:
		out := "list"
		for _, item := range e.Exprs {
			out += sep + strconv.Quote(s.Canonical(item))
		}
		return out
	case *hclsyntax.FunctionCallExpr:
		if text, ok := trimmedText(s, e); ok {
			return "string " + text
		}
		out := "call " + e.Name
		for _, arg := range e.Args {
			out += sep + strconv.Quote(s.Canonical(arg))
		}
		return out
	}
	switch v, ok := s.literal(e); {
	case ok && v.text != nil:
		return "string " + *v.text
	case ok && v.boolean != nil:
		return "bool " + strconv.FormatBool(*v.boolean)
	case ok && v.number != nil: // by its text: printing a number can take for ever
		return "number " + strings.Join(strings.Fields(s.Text(e.Range())), "")
	case ok:
		return "null"
	}
	return "text " + strings.ReplaceAll(s.Text(e.Range()), "\r\n", "\n")
}

// canonicalMap is Canonical for a map of strings: its items in the order of their keys.
func (s *Source) canonicalMap(e *hclsyntax.ObjectConsExpr) string {
	items := make([]string, len(e.Items))
	for i, item := range e.Items {
		text, ok := s.plainString(item.ValueExpr)
		if !ok {
			return "text " + strings.ReplaceAll(s.Text(e.Range()), "\r\n", "\n")
		}
		items[i] = sep + strconv.Quote(s.MapKey(item)) + " " + strconv.Quote(text)
	}
	slices.Sort(items)
	return "map" + strings.Join(items, "")
}

// plainString returns the value of a literal string, a heredoc, or one in trimsuffix().
func (s *Source) plainString(e hclsyntax.Expression) (string, bool) {
	e = Unparen(e)
	if call, ok := e.(*hclsyntax.FunctionCallExpr); ok {
		return trimmedText(s, call)
	}
	v, ok := s.literal(e)
	if !ok || v.text == nil {
		return "", false
	}
	return *v.text, true
}

// found names the kind of an expression, for "found …".
func found(e hclsyntax.Expression) string {
	switch e := Unparen(e).(type) {
	case *hclsyntax.TemplateExpr:
		return "a string"
	case *hclsyntax.LiteralValueExpr:
		switch {
		case !e.Val.IsKnown():
			return "nothing that can be read"
		case e.Val.IsNull():
			return "null"
		case e.Val.Type() == cty.Number:
			return "a number"
		case e.Val.Type() == cty.Bool:
			return strconv.FormatBool(e.Val.True())
		}
	case *hclsyntax.UnaryOpExpr:
		if l, ok := e.Val.(*hclsyntax.LiteralValueExpr); ok && e.Op == hclsyntax.OpNegate && l.Val.Type() == cty.Number {
			return "a number"
		}
	case *hclsyntax.TupleConsExpr:
		return "a list"
	case *hclsyntax.ObjectConsExpr:
		return "a map"
	case *hclsyntax.FunctionCallExpr:
		return "a function call"
	case *hclsyntax.ScopeTraversalExpr:
		return "a reference"
	}
	return "an expression"
}

// mismatch reports a value that is not of the wanted kind, or why it cannot be read at all.
func (d *decoder) mismatch(attr string, e hclsyntax.Expression, want string) {
	rng := e.Range()
	detail := ""
	switch e := Unparen(e).(type) {
	case *hclsyntax.TemplateExpr:
		if _, ok := d.literalText(e); !ok {
			d.interpolation(e)
			return
		}
		detail = d.unquote(e, want)
	case *hclsyntax.TemplateWrapExpr:
		d.interpolation(e)
		return
	case *hclsyntax.FunctionCallExpr:
		d.misplacedCall(attr, e)
		return
	case *hclsyntax.LiteralValueExpr:
		if e.Val.IsKnown() && e.Val.IsNull() {
			detail = "to set nothing, leave the line out"
		} else if want == wantString {
			detail = "write it in double quotes"
		}
	case *hclsyntax.ScopeTraversalExpr:
		d.reference(attr, e, want)
		return
	case *hclsyntax.TupleConsExpr, *hclsyntax.ObjectConsExpr:
	case *hclsyntax.UnaryOpExpr:
		if found(e) != "a number" {
			d.errorf(rng, literalsOnly, "write the value itself: %s", want)
			return
		}
	default:
		d.errorf(rng, literalsOnly, "write the value itself: %s", want)
		return
	}
	d.errorf(rng, "attribute "+Quoted(attr)+" wants "+want+", found "+found(e), "%s", detail)
}

// The names of the kinds of values.
const (
	wantString = "a string"
	wantBool   = "true or false"
	wantInt    = "a whole number"
	wantList   = "a list of strings"
	wantLabels = `a map of strings such as { plan = "gold" }`
	wantSecret = `env("NAME"), file("path"), sealed("…") or a string` //nolint:gosec // a sentence for people
)

// unquote suggests removing the quotes around a number or bool.
func (d *decoder) unquote(e *hclsyntax.TemplateExpr, want string) string {
	text, _ := d.literalText(e)
	_, notInt := strconv.Atoi(text)
	if want == wantBool && (text == "true" || text == "false") || want == wantInt && notInt == nil && len(text) < 10 {
		return "write " + text + " without quotes"
	}
	if want == wantList {
		return "put square brackets around it"
	}
	return ""
}

// interpolation points at the first ${ or %{ of a template.
func (d *decoder) interpolation(e hclsyntax.Expression) {
	rng := e.Range()
	if t, ok := e.(*hclsyntax.TemplateExpr); ok {
		for _, p := range t.Parts {
			if l, ok := p.(*hclsyntax.LiteralValueExpr); !ok || l.Val.IsNull() || l.Val.Type() != cty.String {
				if r := p.Range(); r.Start.Byte >= rng.Start.Byte && r.End.Byte <= rng.End.Byte {
					rng = r
				}
				break
			}
		}
	}
	d.errorf(rng, literalsOnly, "%s", escapeTemplate)
}

// reference reports a bare word or path, which is usually a string without quotes.
func (d *decoder) reference(attr string, e *hclsyntax.ScopeTraversalExpr, want string) {
	detail := ""
	if len(e.Traversal) == 1 && want != wantInt && want != wantBool {
		detail = "if a string is meant, write it in double quotes"
	}
	d.errorf(e.Range(), "attribute "+Quoted(attr)+" wants "+want+", found a reference", "%s", joinLines(literalsOnly,
		detail))
}

func joinLines(lines ...string) string {
	var kept []string
	for _, l := range lines {
		if l != "" {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

// Quoted quotes a name from a file, escaped and shortened.
func Quoted(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return strconv.Quote(s)
}
