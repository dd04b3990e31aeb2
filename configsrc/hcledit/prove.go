package hcledit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
)

// prove checks the result of an edit: parsed as a whole, it has the values, blocks and comments of the source, apart
// from the noted edits. It returns ErrVerify, or ErrExists if a new block or label exists already.
func (d *Draft) prove(out []byte) error {
	after, err := openDocument(out)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	want, got := d.wanted(), after.model()
	for _, key := range want.fresh {
		if want.count[key] > 1 {
			return fmt.Errorf("%w: %s", ErrExists, hclfile.Quoted(strings.TrimPrefix(key[strings.LastIndex(key, sep):], sep)))
		}
	}
	if !maps.Equal(got.says, want.says) {
		return ErrVerify
	}
	slices.Sort(want.comments)
	slices.Sort(got.comments)
	if !slices.Equal(want.comments, got.comments) {
		return fmt.Errorf("%w: a comment would be lost", ErrVerify)
	}
	return nil
}

// A wantedModel is the intended content of the file.
type wantedModel struct {
	*model
	fresh []string // keys of blocks that are new or have a new label: each must be unique
}

func (d *Draft) wanted() *wantedModel {
	w := &wantedModel{model: newModel()}
	for name, attr := range d.Body.Attributes {
		w.says[attributeKey("", name)] = d.Canonical(attr.Expr)
	}
	for _, b := range d.Body.Blocks {
		d.addWanted(w, b, "")
	}
	if d.tail != nil {
		w.addNew(d.tail, "")
	}
	for _, tok := range d.Tokens() {
		if tok.Type == hclsyntax.TokenComment && !(d.table != nil && d.table.gone[d.table.of(tok.Range.Start.Byte)]) {
			w.addComment(tok)
		}
	}
	return w
}

// addWanted adds a block of the source with its edits.
func (d *Draft) addWanted(w *wantedModel, b *hclsyntax.Block, path string) {
	s := d.sites[b]
	if s == nil {
		s = &site{}
	}
	if s.gone {
		return
	}
	labels := b.Labels
	if s.label != nil {
		labels = slices.Clone(labels)
		labels[len(labels)-1] = *s.label
		w.fresh = append(w.fresh, blockKey(path, b.Type, labels))
	}
	key := w.block(path, b.Type, labels)
	for name, attr := range b.Body.Attributes {
		value, changed := s.values[attr]
		switch {
		case !changed:
			w.says[attributeKey(key, name)] = d.Canonical(attr.Expr)
		case value != nil:
			w.says[attributeKey(key, name)] = value.Canonical(value.expr)
		}
	}
	for _, a := range s.added {
		w.says[attributeKey(key, a.name)] = a.value.Canonical(a.value.expr)
	}
	for _, inner := range b.Body.Blocks {
		d.addWanted(w, inner, key)
	}
	for _, added := range s.blocks {
		w.addNew(added, key)
	}
}

// addNew adds the content of new blocks.
func (w *wantedModel) addNew(b *blocks, path string) {
	for _, block := range b.Body.Blocks {
		w.fresh = append(w.fresh, blockKey(path, block.Type, block.Labels))
		b.addBlock(w.model, block, path)
	}
	w.addComments(b.Tokens())
}
