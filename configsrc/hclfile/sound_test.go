package hclfile_test

import (
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
)

// TestSound: what was checked before is not checked again as long as it is the same, and only then.
func TestSound(t *testing.T) {
	const file = `project "acme" {
  name = "Acme"
  template "T" {
    name             = "T"
    subject_template = "Hello"
    body_text        = "Hello {{userName}}"
    body_html        = file("t.html")
  }
}
`
	read := func(text string) func(string) ([]byte, error) {
		return func(string) ([]byte, error) { return []byte(text), nil }
	}
	before, ds := hclfile.Decode("a.hcl", []byte(file), hclfile.Options{ReadFile: read("<p>{{userName}}</p>")})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	check := func(text, html, want string) {
		t.Helper()
		plain, plainDs := hclfile.Decode("a.hcl", []byte(text), hclfile.Options{ReadFile: read(html)})
		r, ds := hclfile.Decode("a.hcl", []byte(text), hclfile.Options{ReadFile: read(html), Sound: before.Declared})
		if len(ds) != len(plainDs) || len(r.Declared.Projects) != len(plain.Declared.Projects) {
			t.Errorf("with Sound %v, without %v", ds, plainDs)
		}
		if want == "" && len(ds) > 0 || want != "" && (len(ds) == 0 || !strings.Contains(ds[0].Summary, want)) {
			t.Errorf("%v, want %q", ds, want)
		}
	}
	check(file, "<p>{{userName}}</p>", "")
	check(file, "<p {{userName}}></p>", "body_html") // the file's text is another
	check(strings.Replace(file, "Hello {{userName}}", "Hello {{user name}}", 1), "<p>{{userName}}</p>", "body_text")
	check(strings.Replace(file, `"Hello"`, `"Hello {{"`, 1), "<p>{{userName}}</p>", "subject_template")
	check(strings.Replace(file, `"acme"`, `"other"`, 1), "<p {{userName}}></p>", "body_html")
}
