package hclfile

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Verify proves what Bytes returned, by what Decode made of it: the blocks that were edited say what was meant, all others
// stand where they have moved to, byte for byte, and no comment is lost but those on lines that were taken out. It
// answers ErrVerify, or ErrExists where a new block or label is there already.
func (d *Draft) Verify(after *Result) error { return d.verify(after.source) }

func (d *Draft) verify(after *source) error {
	if after.body == nil || len(after.body.Attributes) != len(d.body.Attributes) {
		return ErrVerify
	}
	touched, rest := d.touched(), after.body.Blocks
	want, got := newModel(), newModel()
	want.still = map[*hclsyntax.Block]bool{}
	got.still = want.still
	var fresh []string // keys that must be the only ones
	for _, b := range d.body.Blocks {
		if s := d.sites[b]; s != nil && s.gone {
			continue
		}
		if len(rest) == 0 {
			return ErrVerify
		}
		switch now := rest[0]; {
		case touched[b]:
			d.keepStill(b, after, now, want.still)
			fresh = d.addWanted(want, b, "", fresh)
			after.addBlock(got, now, "")
		case now.TypeRange.Start.Byte != d.moved(b.TypeRange.Start.Byte) || now.CloseBraceRange.End.Byte != d.movedBehind(b.CloseBraceRange.End.Byte):
			return ErrVerify // all between is as it was: splices are made in blocks that are touched, and between blocks
		}
		rest = rest[1:]
	}
	if d.tail != nil {
		fresh = d.tail.addFresh(want, "", fresh)
	}
	for _, b := range rest {
		after.addBlock(got, b, "")
	}
	for _, key := range fresh {
		if want.count[key] > 1 || topCount(after.body, key) > 1 {
			return fmt.Errorf("%w: %s", ErrExists, quoted(strings.TrimPrefix(key[strings.LastIndex(key, sep):], sep)))
		}
	}
	if !maps.Equal(got.says, want.says) {
		return ErrVerify
	}
	return d.verifyComments(after, touched)
}

// keepStill finds the blocks inside b that no edit has touched and that stand, byte for byte, where they have moved to in
// now, which b has become in after. It notes both of each pair.
func (d *Draft) keepStill(b *hclsyntax.Block, after *source, now *hclsyntax.Block, still map[*hclsyntax.Block]bool) {
	at := make(map[int]*hclsyntax.Block, len(now.Body.Blocks))
	for _, inner := range now.Body.Blocks {
		at[inner.TypeRange.Start.Byte] = inner
	}
	for _, inner := range b.Body.Blocks {
		from, to := inner.TypeRange.Start.Byte, inner.CloseBraceRange.End.Byte
		there := at[d.moved(from)]
		switch {
		case there == nil:
		case d.edits(from, to):
			d.keepStill(inner, after, there, still)
		case bytes.Equal(after.src[there.TypeRange.Start.Byte:there.CloseBraceRange.End.Byte], d.src[from:to]):
			still[inner], still[there] = true, true
		}
	}
}

// edits reports whether an edit is made in src[from:to]; what is put in before or behind it is not in it.
func (d *Draft) edits(from, to int) bool {
	for _, s := range d.splices {
		if s.from < to && s.to > from { // what is put in goes from a place to the same
			return true
		}
	}
	return false
}

// touched are the file's own blocks in which something is edited.
func (d *Draft) touched() map[*hclsyntax.Block]bool {
	all := map[*hclsyntax.Block]bool{}
	for _, s := range d.order {
		at := s.block.TypeRange.Start.Byte
		i := sort.Search(len(d.body.Blocks), func(i int) bool { return d.body.Blocks[i].TypeRange.Start.Byte > at })
		all[d.body.Blocks[i-1]] = true
	}
	return all
}

// addWanted adds what a block is going to say. To fresh it adds the keys of labels and blocks that are new.
func (d *Draft) addWanted(m *model, b *hclsyntax.Block, path string, fresh []string) []string {
	s := d.sites[b]
	if s == nil {
		s = &site{}
	}
	labels := b.Labels
	if s.label != nil {
		labels = slices.Clone(labels)
		labels[len(labels)-1] = *s.label
	}
	key := m.block(path, b.Type, labels)
	if s.label != nil {
		fresh = append(fresh, blockKey(path, b.Type, labels))
	}
	if m.still[b] {
		return fresh
	}
	for name, attr := range b.Body.Attributes {
		value, changed := s.values[attr]
		switch {
		case !changed:
			m.says[attributeKey(key, name)] = d.canonical(attr.Expr)
		case value != nil:
			m.says[attributeKey(key, name)] = value.canonical(value.expr)
		}
	}
	for _, a := range s.added {
		m.says[attributeKey(key, a.name)] = a.value.canonical(a.value.expr)
	}
	for _, inner := range b.Body.Blocks {
		if in := d.sites[inner]; in == nil || !in.gone {
			fresh = d.addWanted(m, inner, key, fresh)
		}
	}
	for _, added := range s.blocks {
		fresh = added.addFresh(m, key, fresh)
	}
	return fresh
}

// addFresh adds what the new blocks say.
func (b *blocks) addFresh(m *model, path string, fresh []string) []string {
	for _, block := range b.body.Blocks {
		fresh = append(fresh, blockKey(path, block.Type, block.Labels))
		b.addBlock(m, block, path)
	}
	return fresh
}

// topCount tells how many of a file's own blocks have this key.
func topCount(body *hclsyntax.Body, key string) (n int) {
	for _, b := range body.Blocks {
		if blockKey("", b.Type, b.Labels) == key {
			n++
		}
	}
	return n
}

// verifyComments compares the comments around what was touched; all further ones are among bytes that are as they were.
func (d *Draft) verifyComments(after *source, touched map[*hclsyntax.Block]bool) error {
	from, to := d.commented(touched)
	end := len(after.src)
	if to < len(d.src) {
		end = to + len(after.src) - len(d.src)
	}
	before, now := d.src[from:to], after.src[d.movedBehind(from):end]
	if !mayComment(before) && !mayComment(now) && !d.bringsComments() {
		return nil
	}
	want, got := newModel(), newModel()
	if d.tail != nil {
		want.addComments(d.tail.tokens())
	}
	for _, s := range d.order {
		for _, added := range s.blocks {
			want.addComments(added.tokens())
		}
	}
	for _, tok := range d.tokensOf(from, to) {
		if tok.Type == hclsyntax.TokenComment && !(d.table != nil && d.table.gone[d.table.of(tok.Range.Start.Byte)]) {
			want.addComment(tok)
		}
	}
	tokens, _ := hclsyntax.LexConfig(now, "", hcl.InitialPos)
	got.addComments(tokens)
	slices.Sort(want.comments)
	slices.Sort(got.comments)
	if !slices.Equal(want.comments, got.comments) {
		return fmt.Errorf("%w: a comment would be lost", ErrVerify)
	}
	return nil
}

// mayComment reports whether there may be a comment in a text; it may be wrong about texts that have none.
func mayComment(text []byte) bool {
	for i, c := range text {
		if c == '#' || c == '/' && i+1 < len(text) && (text[i+1] == '/' || text[i+1] == '*') {
			return true
		}
	}
	return false
}

// bringsComments reports whether there may be one in what is put in.
func (d *Draft) bringsComments() bool {
	if d.tail != nil && mayComment(d.tail.src) {
		return true
	}
	return slices.ContainsFunc(d.order, func(s *site) bool {
		return slices.ContainsFunc(s.blocks, func(added *blocks) bool { return mayComment(added.src) })
	})
}

// commented is the stretch of the source in which comments may come or go.
func (d *Draft) commented(touched map[*hclsyntax.Block]bool) (from, to int) {
	from, to = len(d.src), 0
	for i, b := range d.body.Blocks {
		if !touched[b] {
			continue
		}
		before, next := 0, len(d.src)
		if i > 0 {
			before = d.body.Blocks[i-1].CloseBraceRange.End.Byte
		}
		if i+1 < len(d.body.Blocks) {
			next = d.body.Blocks[i+1].TypeRange.Start.Byte
		}
		from, to = min(from, before), max(to, next)
	}
	if d.tail != nil {
		to = len(d.src)
		if n := len(d.body.Blocks); n > 0 {
			from = min(from, d.body.Blocks[n-1].CloseBraceRange.End.Byte)
		} else {
			from = 0
		}
	}
	return from, to
}

// tokensOf are the tokens that begin in src[from:to], where from is between two of them. Their lines are not told.
func (d *Draft) tokensOf(from, to int) hclsyntax.Tokens {
	return d.tokens()[d.after(from):d.after(to)]
}
