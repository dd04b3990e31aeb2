package hcledit

import (
	"fmt"
	"reflect"
	"slices"

	"fingerpost/resolver/catalog"
)

// InboundBlock returns the block that declares b, formatted. Its secrets must not be in clear text.
func InboundBlock(b *catalog.Inbound) string {
	block := fmt.Sprintf("inbound %s {\nformat = %s\nsecret = %s\n", Quote(b.Name), Quote(b.Format),
		oneOrList(secretTexts(b.Secrets)))
	if b.Projects != nil {
		block += "projects = " + QuoteList(b.Projects) + "\n"
	}
	return formattedBlock(block + "}\n")
}

// AddInbound appends an inbound block to the file.
func AddInbound(src []byte, b *catalog.Inbound) ([]byte, error) {
	return AppendBlock(src, InboundBlock(b))
}

// RemoveInbound removes the inbound block with the name, see RemoveBlock.
func RemoveInbound(src []byte, name string) ([]byte, error) { return RemoveBlock(src, "inbound", name) }

// ChangeInbound turns the block of was into want, which has its name.
func ChangeInbound(src []byte, was, want *catalog.Inbound) ([]byte, error) {
	return editBlock(src, BlockPath{"inbound", was.Name}, func(s *site) error {
		if was.Format != want.Format {
			if err := s.set("format", Quote(want.Format)); err != nil {
				return err
			}
		}
		if !slices.Equal(was.Secrets, want.Secrets) {
			if err := s.setList("secret", secretTexts(want.Secrets), oneOrList); err != nil {
				return err
			}
		}
		return s.changeList("projects", was.Projects, want.Projects)
	})
}

// changeList notes the edit that turns a list of texts into another one; nil stands for no attribute.
func (s *site) changeList(name string, was, want []string) error {
	switch {
	case reflect.DeepEqual(was, want):
		return nil
	case want == nil:
		s.unset(name)
		return nil
	}
	return s.setList(name, quoteAll(want), listText)
}

// mergedInbound returns t with what changes from b to o; o, if both have added the block.
func mergedInbound(b, o, t *catalog.Inbound) *catalog.Inbound {
	if b == nil {
		return o
	}
	want := t.Clone()
	if b.Format != o.Format {
		want.Format = o.Format
	}
	if !slices.Equal(b.Secrets, o.Secrets) {
		want.Secrets = o.Secrets
	}
	if !reflect.DeepEqual(b.Projects, o.Projects) {
		want.Projects = o.Projects
	}
	return &want
}
