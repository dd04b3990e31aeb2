package hcledit

import (
	"errors"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
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

// TestProofOfLabels: a label too many, one too few, another value, a lost comment and other certificates do not pass.
func TestProofOfLabels(t *testing.T) {
	const before = "project \"p\" {\n  name = \"a\"\n  labels = {\n    a = \"1\" # why\n    b = \"2\"\n  }\n  domain \"x.example\" { certificates = true }\n}\n"
	const good = "project \"p\" {\n  name = \"a\"\n  labels = {\n    a = \"1\" # why\n    b = \"3\"\n  }\n  domain \"x.example\" { certificates = true }\n}\n"
	for change, want := range map[[2]string]error{
		{"", ""}:                   nil,
		{"b = \"3\"", "b = \"2\""}: ErrVerify,
		{"b = \"3\"", "b = \"3\"\n    c = \"3\""}: ErrVerify,
		{"    b = \"3\"\n", ""}:                   ErrVerify,
		{"b = \"3\"", "b = 3"}:                    ErrVerify,
		{" # why", ""}:                            ErrVerify,
		{"= true", "= false"}:                     ErrVerify,
	} {
		d, err := openDraft([]byte(before))
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.findSite(BlockPath{"project", "p"})
		if err == nil {
			err = s.setLabels("labels", []catalog.Label{{Name: "a", Value: "1"}, {Name: "b", Value: "3"}})
		}
		if err != nil {
			t.Fatal(err)
		}
		after := strings.Replace(good, change[0], change[1], 1)
		if err := d.prove([]byte(after)); !errors.Is(err, want) {
			t.Errorf("%v, want %v, for\n%s", err, want, after)
		}
	}
}
