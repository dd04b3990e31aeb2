package hcledit

import (
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// An attribute is one of a block that is written as a whole, with its value as HCL: in expr, or as the elements of a
// list. One with neither is left out.
type attribute struct {
	name, expr string
	elements   []string
	alone      bool // a single element is written without brackets
}

// text returns the value, "" for none.
func (a *attribute) text() string {
	switch {
	case a.elements == nil:
		return a.expr
	case a.alone && len(a.elements) == 1:
		return a.elements[0]
	}
	return listText(a.elements)
}

func textAttribute(name, text string) attribute { return attribute{name: name, expr: Quote(text)} }

// optionalText is a text; "" stands for no attribute.
func optionalText(name, text string) attribute {
	if text == "" {
		return attribute{name: name}
	}
	return textAttribute(name, text)
}

// listAttribute is a list of texts; nil stands for no attribute.
func listAttribute(name string, list []string) attribute {
	if list == nil {
		return attribute{name: name}
	}
	return attribute{name: name, elements: quoteAll(list)}
}

func secretsAttribute(name string, list []catalog.Secret) attribute {
	return attribute{name: name, elements: secretTexts(list), alone: true}
}

// secretTexts returns secrets as HCL.
func secretTexts(list []catalog.Secret) []string {
	texts := make([]string, len(list))
	for i, s := range list {
		if s.Source == catalog.SecretPlain { // one that the file has already
			texts[i] = Quote(s.Ref)
			continue
		}
		texts[i], _ = fieldText(catalog.Field{Value: &s})
	}
	return texts
}

// attributeLines returns attributes as lines of HCL.
func attributeLines(list []attribute) string {
	var b strings.Builder
	for i := range list {
		if text := list[i].text(); text != "" {
			b.WriteString(list[i].name + " = " + text + "\n")
		}
	}
	return b.String()
}

// attributeBlock returns a block of such attributes, formatted.
func attributeBlock(kind, name string, list []attribute) string {
	return formattedBlock(kind + " " + Quote(name) + " {\n" + attributeLines(list) + "}\n")
}

// change notes the edits of attributes whose values differ.
func (s *site) change(was, want []attribute) error {
	for i := range want {
		a, text := &want[i], want[i].text()
		var err error
		switch {
		case text == was[i].text():
		case text == "":
			s.unset(a.name)
		case a.elements != nil:
			err = s.setList(a)
		default:
			err = s.set(a.name, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setList notes the edits that turn a list into a. In one of several lines, or with comments, elements that stay keep
// their places.
func (s *site) setList(a *attribute) error {
	attr := s.block.Body.Attributes[a.name]
	var list *hclsyntax.TupleConsExpr
	if attr != nil {
		list, _ = hclfile.Unparen(attr.Expr).(*hclsyntax.TupleConsExpr)
	}
	if list == nil || s.oneLine || !s.d.spread(list) {
		return s.set(a.name, a.text())
	}
	value, err := parseExpression(a.name, listText(a.elements))
	if err != nil {
		return err
	}
	parts, stays := s.d.listSplices(list, value, a.elements)
	if !stays {
		return s.set(a.name, a.text())
	}
	s.replace(attr, value)
	if s.parts == nil {
		s.parts = map[*hclsyntax.Attribute][]splice{}
	}
	s.parts[attr] = parts
	return nil
}
