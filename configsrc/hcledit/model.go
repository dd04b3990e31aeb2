package hcledit

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A model is the content of a file, flat: a key for each block and attribute, the attribute's value in canonical form,
// independent of its spelling, and the comments.
type model struct {
	says     map[string]string
	count    map[string]int // of blocks with the same type and labels in the same place
	comments []string
}

// sep cannot occur in a file.
const sep = "\x00"

func newModel() *model { return &model{says: map[string]string{}, count: map[string]int{}} }

func (doc *document) model() *model {
	m := newModel()
	doc.addBody(m, doc.Body, "")
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

// block adds a block and returns its key. The key of a second block with the same type and labels has a number.
func (m *model) block(path, typ string, labels []string) string {
	key := blockKey(path, typ, labels)
	if m.count[key]++; m.count[key] > 1 {
		key += sep + "#" + strconv.Itoa(m.count[key])
	}
	m.says[key] = ""
	return key
}

func attributeKey(block, name string) string { return block + sep + "=" + name }

// isLiteral reports whether an expression is part of the language. If its value equals the new one, it keeps its
// spelling.
func (doc *document) isLiteral(e hclsyntax.Expression) bool {
	return !strings.HasPrefix(doc.Canonical(e), "text ")
}
