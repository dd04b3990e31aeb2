package configsrc

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"fingerpost/configsrc/hclfile"
)

// TestParsedFiles keeps trees under their path and content, gives each away once, and lets go of those that were kept
// longest ago when they become too many.
func TestParsedFiles(t *testing.T) {
	var p parsedFiles
	tree := func(n, templates int) (string, [sha256.Size]byte, *hclfile.Parsed) {
		text := fmt.Sprintf("project \"p%d\" {\n  name = \"P\"\n}\n", n)
		for i := range templates {
			text += fmt.Sprintf("template \"T%d\" {\n  name             = \"T\"\n  subject_template = \"s\"\n  body_text        = \"b\"\n}\n", i)
		}
		r, ds := hclfile.Decode("a.hcl", []byte(text), hclfile.Options{})
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		return fmt.Sprint(n, ".hcl"), sha256.Sum256([]byte(text)), r.ParsedWhole(ds)
	}
	path, hash, small := tree(0, 0)
	p.keep(path, hash, small)
	if p.take(path, sha256.Sum256(nil)) != nil {
		t.Error("a tree is given for another content")
	}
	if p.take(path, hash) != nil {
		t.Error("a tree of an old content stays")
	}
	p.keep(path, hash, small)
	if p.take("other.hcl", hash) != nil || p.take(path, hash) != small || p.take(path, hash) != nil {
		t.Error("a tree is not given to the first who asks for it, and to nobody else")
	}
	if p.bytes != 0 || p.recent.Len() != 0 || len(p.byPath) != 0 {
		t.Errorf("%d bytes, %d and %d entries are left", p.bytes, p.recent.Len(), len(p.byPath))
	}
	_, hash, large := tree(1, 1000)
	fit := maxParsed / large.Size()
	if fit < 10 {
		t.Fatalf("only %d trees of %d bytes fit", fit, large.Size())
	}
	for n := range 2 * fit {
		p.keep(fmt.Sprint(n), hash, large)
		p.keep(fmt.Sprint(n), hash, large) // in its own place
		if p.bytes > maxParsed {
			t.Fatalf("%d bytes are kept, %d are allowed", p.bytes, maxParsed)
		}
	}
	for n := range 2 * fit {
		if got, want := p.take(fmt.Sprint(n), hash) != nil, n >= fit; got != want {
			t.Fatalf("%d of %d is kept: %t", n, 2*fit, got)
		}
	}
}

// TestParsedDecode decodes a kept file twice. What the first gives may be changed without the second taking notice.
func TestParsedDecode(t *testing.T) {
	const text = "project \"a\" {\n  name        = \"A\"\n  description = \"was\"\n  domain \"a.example\" {}\n}\n"
	r, ds := hclfile.Decode("a.hcl", []byte(text), hclfile.Options{})
	kept := r.ParsedWhole(ds)
	r.Declared.Projects[0].Domains[0].Name = "x"
	*r.Declared.Projects[0].Project.Description = "changed"
	for range 3 {
		again, ds := kept.Decode(hclfile.Options{})
		p := &again.Declared.Projects[0]
		if len(ds) > 0 || p.Domains[0].Name != "a.example" || *p.Project.Description != "was" {
			t.Fatalf("%+v: %+v", p, ds)
		}
		p.Domains[0].Name = "y"
		*p.Project.Description = "changed again"
	}
}

// TestParsedDeps reads what stands in another file anew with each decoding.
func TestParsedDeps(t *testing.T) {
	const text = "template \"A\" {\n  name = \"A\"\n  subject_template = \"s\"\n  body_text = file(\"a.txt\")\n}\n"
	body := "one"
	o := hclfile.Options{ReadFile: func(string) ([]byte, error) { return []byte(body), nil }}
	r, ds := hclfile.Decode("a.hcl", []byte(text), o)
	kept := r.ParsedWhole(ds)
	body = "two"
	again, ds := kept.Decode(o)
	if len(ds) > 0 || again.Declared.Templates[0].BodyText != "two" {
		t.Errorf("%+v: %+v", again.Declared, ds)
	}
}
