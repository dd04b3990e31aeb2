package hcledit

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

func (doc *document) model() *model {
	m := newModel()
	doc.addBody(m, doc.body, "")
	m.addComments(doc.Tokens())
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

func (doc *document) addBody(m *model, body *hclsyntax.Body, path string) {
	for name, attr := range body.Attributes {
		m.says[attributeKey(path, name)] = doc.Canonical(attr.Expr)
	}
	for _, b := range body.Blocks {
		doc.addBlock(m, b, path)
	}
}

func (doc *document) addBlock(m *model, b *hclsyntax.Block, path string) {
	doc.addBody(m, b.Body, m.block(path, b.Type, b.Labels))
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

// isLiteral reports whether an expression holds its value in itself, so that equal values may keep their spelling.
func (doc *document) isLiteral(e hclsyntax.Expression) bool {
	return !strings.HasPrefix(doc.Canonical(e), "text ")
}
