package hcledit

import (
	"errors"
	"testing"
)

// TestProof: the proof of an edit refuses bytes that do not say what the edit meant, or that lose a comment.
func TestProof(t *testing.T) {
	const before = "project \"p\" {\n  name = \"a\"\n  domain \"x.example\" { primary = true } # why\n  domain \"y.example\" {}\n}\n"
	for after, want := range map[string]error{
		"project \"p\" {\n  name = \"abc\"\n  domain \"x.example\" { primary = true } # why\n  domain \"y.example\" {}\n}\n":  nil,
		"project \"p\" {\n  name = \"abc\"\n  domain \"x.example\" { primary = false } # why\n  domain \"y.example\" {}\n}\n": ErrVerify,
		"project \"p\" {\n  name = \"abc\"\n  domain \"x.example\" { primary = true } # why\n  domain \"z.example\" {}\n}\n":  ErrVerify,
		"project \"p\" {\n  name = \"abc\"\n  domain \"x.example\" { primary = true } # why\n}\n":                             ErrVerify,
		"project \"p\" {\n  name = \"ab\"\n  domain \"x.example\" { primary = true } # why\n  domain \"y.example\" {}\n}\n":   ErrVerify,
		"project \"p\" {\n  name = \"abc\"\n  domain \"x.example\" { primary = true }\n  domain \"y.example\" {}\n}\n":        ErrVerify, // the comment
		"project \"p\" {\n  name = \"abc\"\n": ErrVerify,
	} {
		d, err := openDraft([]byte(before))
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.findSite(BlockPath{"project", "p"})
		if err == nil {
			err = s.set("name", `"abc"`)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := d.prove([]byte(after)); !errors.Is(err, want) {
			t.Errorf("%v, want %v, for\n%s", err, want, after)
		}
	}
}
