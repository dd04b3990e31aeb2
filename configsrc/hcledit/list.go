package hcledit

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
)

func quoteAll(words []string) []string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return quoted
}

func listText(elements []string) string { return "[" + strings.Join(elements, ", ") + "]" }

// spread reports whether a list has several lines or a comment, so that its elements have places worth keeping.
func (doc *document) spread(list *hclsyntax.TupleConsExpr) bool {
	text := doc.Text(list.Range())
	return strings.Contains(text, "\n") || mayComment([]byte(text))
}

// listSplices returns the edits that turn a list into value, whose elements are texts. stays is false if no element of the
// list is left. Elements that value has in the same order keep their places and their comments.
func (d *Draft) listSplices(list *hclsyntax.TupleConsExpr, value *expression, texts []string) (all []splice, stays bool) {
	var want []string
	for _, e := range hclfile.Unparen(value.expr).(*hclsyntax.TupleConsExpr).Exprs {
		want = append(want, value.Canonical(e))
	}
	next := 0
	var last hclsyntax.Expression
	var gone []hclsyntax.Expression
	for _, e := range list.Exprs {
		i := slices.Index(want[next:], d.Canonical(e))
		if i < 0 {
			gone = append(gone, e)
			continue
		}
		for _, text := range texts[next : next+i] {
			all = append(all, d.before(e, text))
		}
		next, last = next+i+1, e
	}
	if last == nil {
		return nil, false
	}
	all = append(all, d.behind(last, texts[next:])...) // before the removals: one of them may begin at the same byte
	for _, e := range gone {
		all = append(all, d.takeOut(e)...)
	}
	return all, true
}

// before returns the splice of a new element before e: on a line of its own if e begins one.
func (d *Draft) before(e hclsyntax.Expression, text string) splice {
	from := e.Range().Start.Byte
	if indent := d.indentAt(from); len(bytes.TrimSpace(d.Src[d.lineStart(from):from])) == 0 {
		return splice{from, from, d.lineEnding(text + ",\n" + indent)}
	}
	return splice{from, from, text + ", "}
}

// behind returns the splices of new elements behind e, which stays: on lines of their own if e ends one.
func (d *Draft) behind(e hclsyntax.Expression, texts []string) (all []splice) {
	if len(texts) == 0 {
		return nil
	}
	to := e.Range().End.Byte
	at := d.after(to)
	for d.Tokens()[at].Type == hclsyntax.TokenComment || d.Tokens()[at].Type == hclsyntax.TokenNewline {
		at++
	}
	end := to
	if comma := d.Tokens()[at]; comma.Type == hclsyntax.TokenComma {
		end = comma.Range.End.Byte
	} else {
		all = append(all, splice{to, to, ","})
	}
	if line, ok := d.skipLine(end); ok {
		indent := d.indentAt(e.Range().Start.Byte)
		return append(all, splice{line, line, d.lineEnding(indent + strings.Join(texts, ",\n"+indent) + ",\n")})
	}
	return append(all, splice{end, end, " " + strings.Join(texts, ", ") + ","})
}
