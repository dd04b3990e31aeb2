package hcledit

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
)

// position returns the position at which an expression begins.
func position(e hclsyntax.Expression) hclfile.Pos {
	p := e.Range().Start
	return hclfile.Pos{Line: p.Line, Column: p.Column, Byte: p.Byte}
}

// SetAttribute gives an attribute a new value. expr is HCL, such as Quote and Literal return. If the attribute exists,
// only the bytes of its value change, and none if it has this value already. A new attribute gets a line of its own
// after the block's last attribute; a block on one line is split first if needed.
func SetAttribute(src []byte, at BlockPath, name, expr string) ([]byte, error) {
	return editBlock(src, at, func(s *site) error { return s.set(name, expr) })
}

// RenameLabel replaces the label of a block.
func RenameLabel(src []byte, at BlockPath, label string) ([]byte, error) {
	return editBlock(src, at, func(s *site) error { return s.rename(label) })
}

func (s *site) rename(label string) error {
	n := len(s.block.Labels)
	if n == 0 {
		return fmt.Errorf("rename: a %s block has no label", s.block.Type)
	}
	if s.block.Labels[n-1] != label {
		s.label = &label
	}
	return nil
}

// AppendBlock adds top-level blocks at the end of the file, after a blank line and in the file's line ending. The text
// is one block or several, with LF and without indentation.
func AppendBlock(src []byte, text string) ([]byte, error) {
	d, err := openDraft(src)
	if err != nil {
		return nil, err
	}
	if d.tail, err = parseBlocks(text); err != nil {
		return nil, err
	}
	return d.made()
}

// insert adds blocks before the closing brace and after a blank line, indented like their siblings. The text has LF and
// no indentation.
func (s *site) insert(text string) error {
	inner, err := parseBlocks(text)
	if err != nil {
		return err
	}
	s.blocks = append(s.blocks, inner)
	return nil
}

// RemoveBlock removes a block, the comment directly above it (unless the file begins with that comment) and one of the
// blank lines around it. typ and labels are a BlockPath: RemoveBlock(src, "project", "acme", "domain",
// "old.acme.example").
func RemoveBlock(src []byte, typ string, labels ...string) ([]byte, error) {
	return editBlock(src, slices.Concat(BlockPath{typ}, labels), func(s *site) error {
		s.d.remove(s.block)
		return nil
	})
}

// editBlock makes one edit of one block.
func editBlock(src []byte, at BlockPath, edit func(s *site) error) ([]byte, error) {
	d, err := openDraft(src)
	if err != nil {
		return nil, err
	}
	s, err := d.findSite(at)
	if err != nil {
		return nil, err
	}
	if err := edit(s); err != nil {
		return nil, err
	}
	return d.made()
}
