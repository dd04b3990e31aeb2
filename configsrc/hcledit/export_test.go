package hcledit

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
)

// A Step is one edit, for tests that make several both ways: one after the other, and noted in one Draft.
type Step struct {
	Op   string // set, unset, rename, insert, remove
	At   BlockPath
	Name string
	Text string
}

// Alone makes the edit by itself.
func (s Step) Alone(src []byte) ([]byte, error) {
	switch s.Op {
	case "set":
		return SetAttribute(src, s.At, s.Name, s.Text)
	case "unset":
		return RemoveAttribute(src, s.At, s.Name)
	case "rename":
		return RenameLabel(src, s.At, s.Text)
	case "insert":
		return InsertBlock(src, s.At, s.Text)
	}
	return RemoveBlock(src, s.At[0], s.At[1:]...)
}

// RemoveAttribute removes an attribute with its line. If the attribute does not exist, the file stays unchanged.
func RemoveAttribute(src []byte, at BlockPath, name string) ([]byte, error) {
	return editBlock(src, at, func(s *site) error {
		s.unset(name)
		return nil
	})
}

// InsertBlock adds a block inside another one.
func InsertBlock(src []byte, at BlockPath, text string) ([]byte, error) {
	return editBlock(src, at, func(s *site) error { return s.insert(text) })
}

// Together makes all of them in one Draft.
func Together(src []byte, steps []Step) ([]byte, error) {
	d, err := drafted(src, steps)
	if err != nil {
		return nil, err
	}
	return d.made()
}

func drafted(src []byte, steps []Step) (*Draft, error) {
	d, err := openDraft(src)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		site, err := d.findSite(s.At)
		if err != nil {
			return nil, err
		}
		switch s.Op {
		case "set":
			err = site.set(s.Name, s.Text)
		case "unset":
			site.unset(s.Name)
		case "rename":
			err = site.rename(s.Text)
		case "insert":
			err = site.insert(s.Text)
		case "remove":
			d.remove(site.block)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Prove proves the bytes that an edit has made, see prove.
func (d *Draft) Prove(out []byte) error { return d.prove(out) }

// InLanguage reports whether an attribute has a literal or a function call for a value.
func InLanguage(src []byte, at BlockPath, name string) bool {
	doc, err := openDocument(src)
	if err != nil {
		return false
	}
	block, err := doc.find(at)
	if err != nil || block.Body.Attributes[name] == nil {
		return false
	}
	expr := block.Body.Attributes[name].Expr
	_, call := hclfile.Unparen(expr).(*hclsyntax.FunctionCallExpr)
	return call || doc.isLiteral(expr)
}
