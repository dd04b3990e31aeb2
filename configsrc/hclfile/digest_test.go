package hclfile_test

import (
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// Layout, comments and what the service writes by itself do not count; everything else does.
func TestDigest(t *testing.T) {
	digest := func(src string) [32]byte {
		r, ds := hclfile.Decode("acme.hcl", []byte(src), hclfile.Options{})
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		p := r.Declared.Projects[0].Project
		return r.Digest(catalog.Ref{Kind: catalog.KindProject, Name: p.Slug, UUID: p.UUID, ID: p.ID})
	}
	const block = `project "acme" {
  name = "Acme"
  domain "acme.example" {}
  template "W" {
    name             = "W"
    subject_template = "S"
    body_text        = <<-EOT
      Hello
    EOT
  }
}
`
	want := digest(block)
	replaced := func(old, with string) string {
		text := strings.Replace(block, old, with, 1)
		if text == block {
			t.Fatal(old)
		}
		return text
	}
	for what, same := range map[string]string{
		"comments":  "# ours\n" + replaced("Acme\"", "Acme\" # the shop"),
		"layout":    replaced("  name = \"Acme\"", "\n\n\tname   =   \"Acme\""),
		"identity":  replaced("{", "{\n  uuid = \"5e0f1b26-6d9a-4f9e-8f31-61d5e9b8a0c4\"\n  id = 7\n"),
		"a proof":   replaced("{}", "{ verified = \"2026-11-24\" }"),
		"more":      block + "project \"other\" {\n  name = \"Other\"\n}\n",
		"CRLF":      strings.ReplaceAll(block[:strings.Index(block, "  template")], "\n", "\r\n") + block[strings.Index(block, "  template"):],
		"the proof": replaced("{}", "{\n    verified = \"pending\" # asked\n  }"),
	} {
		if digest(same) != want {
			t.Errorf("%s: another digest", what)
		}
	}
	for what, other := range map[string]string{
		"a name":    replaced("Acme\"", "Acme Shop\""),
		"a domain":  replaced("acme.example", "shop.acme.example"),
		"a text":    replaced("Hello", "Hello "),
		"a setting": replaced("{}", "{ active = false }"),
		"a status":  replaced("{\n", "{\n  status = \"ACTIVE\"\n"),
	} {
		if digest(other) == want {
			t.Errorf("%s: the same digest", what)
		}
	}
	r, _ := hclfile.Decode("acme.hcl", []byte(block), hclfile.Options{})
	if sum := r.Digest(catalog.Ref{Kind: catalog.KindProject, Name: "none"}); sum != [32]byte{} {
		t.Errorf("of nothing: %x", sum)
	}
}
