package hcledit

import "fingerpost/resolver/catalog"

// InboundBlock returns the block that declares b, formatted. Its secrets must not be in clear text.
func InboundBlock(b *catalog.Inbound) string {
	return attributeBlock("inbound", b.Name, inboundAttributes(b))
}

func inboundAttributes(b *catalog.Inbound) []attribute {
	return []attribute{textAttribute("format", b.Format), secretsAttribute("secret", b.Secrets),
		listAttribute("projects", b.Projects)}
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
		return s.change(inboundAttributes(was), inboundAttributes(want))
	})
}

// mergedInbound returns t with what changes from b to o; o, if both have added the block.
func mergedInbound(b, o, t *catalog.Inbound) *catalog.Inbound {
	if b == nil {
		return o
	}
	want := t.Clone()
	takeChange(&want.Format, b.Format, o.Format)
	takeChange(&want.Secrets, b.Secrets, o.Secrets)
	takeChange(&want.Projects, b.Projects, o.Projects)
	return &want
}
