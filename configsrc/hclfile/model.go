package hclfile

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A model is all that a file says, flat: a key for each block and attribute, and an attribute's value in a form that
// spelling does not change. It is what an edit is checked against.
type model struct {
	says     map[string]string
	count    map[string]int // of blocks with the same type and labels in the same place
	comments []string
}

// sep cannot stand in a file.
const sep = "\x00"

func newModel() *model { return &model{says: map[string]string{}, count: map[string]int{}} }

func (s *source) model() *model {
	m := newModel()
	s.addBody(m, s.body, "")
	m.addComments(s.tokens())
	return m
}

func (m *model) addComments(tokens hclsyntax.Tokens) {
	for _, tok := range tokens {
		if tok.Type == hclsyntax.TokenComment {
			m.addComment(tok)
		}
	}
}

func (m *model) addComment(tok hclsyntax.Token) {
	m.comments = append(m.comments, strings.ReplaceAll(string(bytes.TrimSpace(tok.Bytes)), "\r\n", "\n"))
}

func (s *source) addBody(m *model, body *hclsyntax.Body, path string) {
	for name, attr := range body.Attributes {
		m.says[attributeKey(path, name)] = s.canonical(attr.Expr)
	}
	for _, b := range body.Blocks {
		s.addBlock(m, b, path)
	}
}

func (s *source) addBlock(m *model, b *hclsyntax.Block, path string) {
	s.addBody(m, b.Body, m.block(path, b.Type, b.Labels))
}

func blockKey(path, typ string, labels []string) string {
	return path + sep + "{" + typ + sep + strings.Join(labels, sep)
}

// block notes a block and gives its key: its number is in it where there is one like it already.
func (m *model) block(path, typ string, labels []string) string {
	key := blockKey(path, typ, labels)
	if m.count[key]++; m.count[key] > 1 {
		key += sep + "#" + strconv.Itoa(m.count[key])
	}
	m.says[key] = ""
	return key
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
