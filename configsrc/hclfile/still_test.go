package hclfile

import (
	"errors"
	"testing"
)

// TestVerifySeesInnerBlocks: a block inside an edited one is passed over as long as it stands, unedited, where it has moved
// to. Where it does not, what it says is compared.
func TestVerifySeesInnerBlocks(t *testing.T) {
	const before = "project \"p\" {\n  name = \"a\"\n  domain \"x.example\" { primary = true }\n  domain \"y.example\" {}\n}\n"
	for after, want := range map[string]error{
		"project \"p\" {\n  name = \"abc\"\n  domain \"x.example\" { primary = true }\n  domain \"y.example\" {}\n}\n":  nil,
		"project \"p\" {\n  name = \"abc\"\n  domain \"x.example\" { primary = false }\n  domain \"y.example\" {}\n}\n": ErrVerify,
		"project \"p\" {\n  name = \"abc\"\n  domain \"x.example\" { primary = true }\n  domain \"z.example\" {}\n}\n":  ErrVerify,
		"project \"p\" {\n  name = \"abc\"\n  domain \"x.example\" { primary = true }\n}\n":                             ErrVerify,
		"project \"p\" {\n  name = \"ab\"\n  domain \"x.example\" { primary = true }\n  domain \"y.example\" {}\n}\n":   ErrVerify,
	} {
		d, err := openDraft([]byte(before))
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.findSite(BlockPath{"project", "p"})
		if err == nil {
			err = s.set("name", `"abc"`)
		}
		if err == nil {
			_, err = d.Bytes()
		}
		if err != nil {
			t.Fatal(err)
		}
		made, err := openDocument([]byte(after))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.verify(made.source); !errors.Is(err, want) {
			t.Errorf("%v, want %v, for\n%s", err, want, after)
		}
	}
}
