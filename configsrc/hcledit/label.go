package hcledit

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// maxMapLine is the length up to which a new map is on one line.
const maxMapLine = 80

// mapText returns labels as HCL.
func mapText(labels []catalog.Label) string {
	items := make([]string, len(labels))
	for i, l := range labels {
		items[i] = mapItem(l)
	}
	if line := "{ " + strings.Join(items, ", ") + " }"; len(line) <= maxMapLine {
		return line
	}
	return "{\n  " + strings.Join(items, "\n  ") + "\n}"
}

func mapItem(l catalog.Label) string { return mapKey(l.Name) + " = " + Quote(l.Value) }

// mapKey returns a label's name as a key: "for" as the first word of a map would begin an expression.
func mapKey(name string) string {
	if name == "for" {
		return Quote(name)
	}
	return name
}

// setLabels notes the edits that turn the map of an attribute into want. Only the entries that differ change: a value
// is replaced, a new entry stands after the last one in the layout of the map, a removed one takes the comment on its
// line and the one directly above it along. Without labels the attribute is removed.
func (s *site) setLabels(name string, want []catalog.Label) error {
	attr := s.block.Body.Attributes[name]
	if len(want) == 0 {
		s.unset(name)
		return nil
	}
	var object *hclsyntax.ObjectConsExpr
	if attr != nil {
		object, _ = hclfile.Unparen(attr.Expr).(*hclsyntax.ObjectConsExpr)
	}
	if object == nil || s.oneLine {
		return s.set(name, mapText(want))
	}
	value, err := parseExpression(name, mapText(want))
	if err != nil {
		return err
	}
	s.replace(attr, value)
	m := newMapEdit(s.d, object, want)
	if len(m.items) == 0 && !m.comments {
		return nil // replaced as a whole
	}
	if s.parts == nil {
		s.parts = map[*hclsyntax.Attribute][]splice{}
	}
	indent := s.d.indentAt(attr.NameRange.Start.Byte) + s.d.step(s.block)
	s.parts[attr] = m.splices(indent)
	return nil
}

// A mapEdit is the edit of one map.
type mapEdit struct {
	d        *Draft
	object   *hclsyntax.ObjectConsExpr
	items    []mapEntry
	added    []catalog.Label
	comments bool // the map holds comments
}

// A mapEntry is an entry of the map in the source.
type mapEntry struct {
	from, to int // its bytes, without the comma
	comma    int // the offset behind the comma; -1 if there is none
	key, old hclsyntax.Expression
	value    string // the new value as HCL; "" if the present one stays
	gone     bool
}

func newMapEdit(d *Draft, object *hclsyntax.ObjectConsExpr, want []catalog.Label) *mapEdit {
	m := &mapEdit{d: d, object: object, added: slices.Clone(want)}
	rng := object.Range()
	for _, tok := range d.Tokens()[d.after(rng.Start.Byte):d.after(rng.End.Byte)] {
		m.comments = m.comments || tok.Type == hclsyntax.TokenComment
	}
	for _, item := range object.Items {
		e := mapEntry{from: item.KeyExpr.Range().Start.Byte, to: item.ValueExpr.Range().End.Byte, comma: -1,
			key: item.KeyExpr, old: hclfile.Unparen(item.ValueExpr)}
		at := d.after(e.to)
		for d.Tokens()[at].Type == hclsyntax.TokenComment && !hclfile.EndsLine(d.Tokens()[at]) {
			at++
		}
		if tok := d.Tokens()[at]; tok.Type == hclsyntax.TokenComma {
			e.comma = tok.Range.End.Byte
		}
		name := d.MapKey(item)
		i := slices.IndexFunc(m.added, func(l catalog.Label) bool { return l.Name == name })
		if e.gone = i < 0; !e.gone {
			if d.Canonical(e.old) != "string "+m.added[i].Value {
				e.value = Quote(m.added[i].Value)
			}
			m.added = slices.Delete(m.added, i, i+1)
		}
		m.items = append(m.items, e)
	}
	return m
}

// splices returns the edits. Lines without other content than a removed entry are removed in the line table. indent is
// for entries of a map that has none.
func (m *mapEdit) splices(indent string) (all []splice) {
	rng := m.object.Range()
	regroups := len(m.added) > 0 || slices.ContainsFunc(m.items, func(e mapEntry) bool { return e.gone })
	if regroups && !m.comments && !strings.Contains(m.d.Text(rng), "\n") {
		return []splice{{rng.Start.Byte, rng.End.Byte, m.line()}}
	}
	first := true
	for i, e := range m.items {
		if e.gone {
			follows := i == len(m.items)-1 && len(m.added) > 0
			all = append(all, m.remove(e, follows)...)
			continue
		}
		if key := m.d.Text(e.key.Range()); first && key != mapKey(key) {
			all = append(all, splice{e.from, e.from + len(key), mapKey(key)})
		}
		if first = false; e.value != "" {
			all = append(all, splice{e.old.Range().Start.Byte, e.old.Range().End.Byte, e.value})
		}
	}
	if len(m.added) > 0 {
		all = append(all, m.add(indent)...)
	}
	return all
}

// line returns a map on one line with its entries as they are spelled.
func (m *mapEdit) line() string {
	var items []string
	for _, e := range m.items {
		if e.gone {
			continue
		}
		value, name := e.old.Range(), m.d.Text(e.key.Range())
		text := string(m.d.Src[e.from:e.to])
		if e.value != "" {
			text = string(m.d.Src[e.from:value.Start.Byte]) + e.value + string(m.d.Src[value.End.Byte:e.to])
		}
		if len(items) == 0 {
			text = mapKey(name) + text[len(name):]
		}
		items = append(items, text)
	}
	for _, l := range m.added {
		items = append(items, mapItem(l))
	}
	return "{ " + strings.Join(items, ", ") + " }"
}

// remove takes an entry out, with its comma. follows says that a new entry takes its place.
func (m *mapEdit) remove(e mapEntry, follows bool) []splice {
	end := max(e.to, e.comma)
	behind, ends := m.d.skipLine(end)
	together := e.comma < 0 || len(bytes.TrimSpace(m.d.Src[e.to:e.comma-1])) == 0 // no comment is between the two
	switch {
	case ends && len(bytes.TrimSpace(m.d.Src[m.d.lineStart(e.from):e.from])) == 0:
		lines := m.d.lines()
		if top, next := m.d.topLine(e.from), lines.of(behind-1)+1; !follows {
			lines.remove(top, next)
		} else {
			for i := top; i < next; i++ { // the blank lines around it stay
				lines.gone[i] = true
			}
		}
		return nil
	case together:
		return []splice{{from: e.from, to: end}}
	}
	return []splice{{from: e.from, to: e.to}, {from: e.comma - 1, to: e.comma}}
}

// add puts the new entries after the last one.
func (m *mapEdit) add(indent string) (all []splice) {
	shut := m.object.Range().End.Byte - 1
	if len(m.items) == 0 {
		start := m.d.lineStart(shut)
		if start < m.object.Range().Start.Byte || len(bytes.TrimSpace(m.d.Src[start:shut])) > 0 {
			return []splice{{shut, shut, " " + m.joined(", ") + " "}}
		}
		return []splice{{start, start, m.lines(indent, "", "")}}
	}
	last := m.items[len(m.items)-1]
	end := max(last.to, last.comma)
	next, ends := m.d.skipLine(end)
	switch {
	case !ends && last.comma < 0 && !last.gone:
		return []splice{{end, end, ", " + m.joined(", ")}}
	case !ends:
		return []splice{{end, end, " " + m.joined(", ")}}
	}
	indent = m.d.indentAt(last.from)
	kept := slices.DeleteFunc(slices.Clone(m.items), func(e mapEntry) bool { return e.gone })
	commas := slices.ContainsFunc(m.items, func(e mapEntry) bool { return e.comma >= 0 })
	if !commas {
		return []splice{{next, next, m.lines(indent, "", "")}}
	}
	if n := len(kept); n > 0 && kept[n-1].comma < 0 {
		at := kept[n-1].to
		all = append(all, splice{at, at, ","})
	}
	final := ""
	if last.comma >= 0 {
		final = ","
	}
	return append(all, splice{next, next, m.lines(indent, ",", final)})
}

// lines returns the new entries as lines, with a separator behind all but the last one.
func (m *mapEdit) lines(indent, separator, final string) string {
	return m.d.lineEnding(indent + m.joined(separator+"\n"+indent) + final + "\n")
}

func (m *mapEdit) joined(separator string) string {
	items := make([]string, len(m.added))
	for i, l := range m.added {
		items[i] = mapItem(l)
	}
	return strings.Join(items, separator)
}
