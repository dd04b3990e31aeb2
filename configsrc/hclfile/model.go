package hclfile

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A model is all that a file says, flat: a key for each block and attribute, and an attribute's value in a form that
// spelling does not change. It is what an edit is checked against.
type model struct {
	says     map[string]string
	keys     map[*hclsyntax.Block]string
	count    map[string]int // of blocks with the same type and labels in the same place
	comments []string
}

// sep cannot stand in a file.
const sep = "\x00"

func (doc *document) model() *model {
	m := &model{says: map[string]string{}, keys: map[*hclsyntax.Block]string{}, count: map[string]int{}}
	doc.addBody(m, doc.body, "")
	for _, tok := range doc.tokens() {
		if tok.Type == hclsyntax.TokenComment {
			m.comments = append(m.comments, string(bytes.TrimSpace(tok.Bytes)))
		}
	}
	return m
}

func (doc *document) addBody(m *model, body *hclsyntax.Body, path string) {
	for name, attr := range body.Attributes {
		m.says[attributeKey(path, name)] = doc.canonical(attr.Expr)
	}
	for _, b := range body.Blocks {
		key := path + sep + "{" + b.Type + sep + strings.Join(b.Labels, sep)
		if m.count[key]++; m.count[key] > 1 {
			key += sep + "#" + strconv.Itoa(m.count[key])
		}
		m.says[key] = ""
		m.keys[b] = key
		doc.addBody(m, b.Body, key)
	}
}

func attributeKey(block, name string) string { return block + sep + "=" + name }

// canonical is an expression's value with its kind, or, for what this language does not know, its text.
func (s *source) canonical(e hclsyntax.Expression) string {
	e = unparen(e)
	switch e := e.(type) {
	case *hclsyntax.TupleConsExpr:
		out := "list"
		for _, item := range e.Exprs {
			out += sep + strconv.Quote(s.canonical(item))
		}
		return out
	case *hclsyntax.FunctionCallExpr:
		if text, ok := trimmedText(s, e); ok {
			return "string " + text
		}
		out := "call " + e.Name
		for _, arg := range e.Args {
			out += sep + strconv.Quote(s.canonical(arg))
		}
		return out
	}
	switch v, ok := s.literal(e); {
	case ok && v.text != nil:
		return "string " + *v.text
	case ok && v.boolean != nil:
		return "bool " + strconv.FormatBool(*v.boolean)
	case ok && v.number != nil: // by its text: printing a number can take for ever
		return "number " + strings.Join(strings.Fields(s.text(e.Range())), "")
	case ok:
		return "null"
	}
	return "text " + strings.ReplaceAll(s.text(e.Range()), "\r\n", "\n")
}

// isLiteral reports whether an expression holds its value in itself, so that equal values may keep their spelling.
func (s *source) isLiteral(e hclsyntax.Expression) bool {
	return !strings.HasPrefix(s.canonical(e), "text ")
}

// verified returns after, if it parses, says exactly want, and has kept the comments: all of them, plus added ones, and
// where a block was taken out some fewer.
func verified(after []byte, want map[string]string, comments func(got []string) bool) ([]byte, error) {
	doc, err := openDocument(after)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVerify, err)
	}
	got := doc.model()
	if !maps.Equal(got.says, want) {
		return nil, ErrVerify
	}
	if !comments(got.comments) {
		return nil, fmt.Errorf("%w: a comment would be lost", ErrVerify)
	}
	return after, nil
}

// keeps accepts exactly these comments, in any order.
func keeps(want ...[]string) func([]string) bool {
	all := slices.Sorted(slices.Values(slices.Concat(want...)))
	return func(got []string) bool { return slices.Equal(slices.Sorted(slices.Values(got)), all) }
}

// noneNew accepts any part of these comments, in their order.
func noneNew(have []string) func([]string) bool {
	return func(got []string) bool {
		i := 0
		for _, c := range got {
			for i < len(have) && have[i] != c {
				i++
			}
			if i == len(have) {
				return false
			}
			i++
		}
		return true
	}
}
