package hcledit

import (
	"bytes"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
)

// ReplaceInLists replaces the slug old by now in the projects list of every key, webhook, rule of a login and
// inbound block of the file;
// if now is "", it removes old. Other elements, comments and line breaks stay. An element on a line of its own is removed
// with that line. found reports whether a list names old.
func (d *Draft) ReplaceInLists(old, now string) (found bool, err error) {
	for l := range hclfile.ProjectLists(d.Body) {
		named, err := d.replaceInList(l.In, l.Attr, l.List, old, now)
		if err != nil {
			return false, err
		}
		found = found || named
	}
	return found, nil
}

func (d *Draft) replaceInList(block *hclsyntax.Block, attr *hclsyntax.Attribute, list *hclsyntax.TupleConsExpr, old,
	now string) (found bool, err error) {
	var match []hclsyntax.Expression
	var want []string
	rest := 0
	for _, e := range list.Exprs {
		switch {
		case d.Canonical(e) != "string "+old:
			rest, want = rest+1, append(want, d.Text(e.Range()))
		case now != "":
			match, want = append(match, e), append(want, Quote(now))
		default:
			match = append(match, e)
		}
	}
	if len(match) == 0 {
		return false, nil
	}
	value, err := parseExpression(attr.Name, "["+strings.Join(want, ", ")+"]")
	if err != nil {
		return false, err
	}
	s := d.site(block)
	s.replace(attr, value)
	if s.oneLine {
		return true, nil // it holds nothing else, so the list is rewritten
	}
	if s.parts == nil {
		s.parts = map[*hclsyntax.Attribute][]splice{}
	}
	whole := list.Range()
	text := d.Text(whole)
	parts := []splice{}
	switch {
	case now != "":
		for _, e := range match {
			parts = append(parts, splice{e.Range().Start.Byte, e.Range().End.Byte, Quote(now)})
		}
	case !mayComment([]byte(text)) && (rest == 0 || !strings.Contains(text, "\n")):
		parts = append(parts, splice{whole.Start.Byte, whole.End.Byte, "[" + strings.Join(want, ", ") + "]"})
	default:
		for _, e := range match {
			parts = append(parts, d.takeOut(e)...)
		}
	}
	s.parts[attr] = parts
	return true, nil
}

// takeOut removes one element of a list of several lines, with the comma behind it. Lines without other content are
// removed in the line table.
func (d *Draft) takeOut(e hclsyntax.Expression) []splice {
	from, to := e.Range().Start.Byte, e.Range().End.Byte
	at := d.after(to)
	for d.Tokens()[at].Type == hclsyntax.TokenComment || d.Tokens()[at].Type == hclsyntax.TokenNewline {
		at++
	}
	comma := d.Tokens()[at]
	if comma.Type != hclsyntax.TokenComma {
		comma.Range.Start.Byte, comma.Range.End.Byte = to, to // the last element has none
	}
	together := len(bytes.TrimSpace(d.Src[to:comma.Range.Start.Byte])) == 0 // no comment is between the two
	end := comma.Range.End.Byte
	behind, ends := d.skipLine(end)
	if together && ends && len(bytes.TrimSpace(d.Src[d.lineStart(from):from])) == 0 {
		lines := d.lines()
		for i := d.topLine(from); i <= lines.of(behind-1); i++ {
			lines.gone[i] = true
		}
		return nil
	}
	for d.Src[end] == ' ' || d.Src[end] == '\t' {
		end++
	}
	if together {
		return []splice{{from: from, to: end}}
	}
	return []splice{{from: from, to: to}, {from: comma.Range.Start.Byte, to: end}}
}
