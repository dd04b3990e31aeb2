package hclfile_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// TestPlaceholderRanges asserts that a problem in a body is shown where it stands in the file, however the body is
// written. The want is the source that is marked.
func TestPlaceholderRanges(t *testing.T) {
	f := func(body, want, message string) {
		t.Helper()
		for _, eol := range []string{"\n", "\r\n"} {
			src := strings.ReplaceAll("template \"T\" {\n  name = \"T\"\n  subject_template = \"s\"\n  body_html = "+body+"\n}\n", "\n", eol)
			_, ds := hclfile.Decode("t.hcl", []byte(src), hclfile.Options{ReadFile: mail})
			if len(ds) != 1 {
				t.Fatalf("%q: %s", src, text(ds))
			}
			got := src[ds[0].Start.Byte:ds[0].End.Byte]
			if got != strings.ReplaceAll(want, "\n", eol) || !strings.HasPrefix(ds[0].Summary, "body_html: "+message) {
				t.Errorf("%q: marks %q, %s", src, got, ds[0].Summary)
			}
		}
	}
	const braces = "what stands in double braces"
	f(`"x {{ü}} y"`, "{{ü}}", braces)
	f(`("grüß <a {{b}}>")`, "{{b}}", "{{b}} cannot stand in the name of an attribute")
	f(`"\" {{a b}}"`, "{{a b}}", braces)
	f(`"{{a b}} \""`, "{{a b}}", braces)
	f(`"\" {{a b}} \""`, `"\" {{a b}} \""`, "line 1, column 3: "+braces) // escapes on both sides: not looked for
	f(`"\u007b\u007ba b}}"`, `"\u007b\u007ba b}}"`, "line 1, column 1: "+braces)
	f("<<E\n one\n  {{a b}}\nE", "{{a b}}", braces)
	f("<<-E\n      one\n        {{a b}} \n    E", "{{a b}}", braces)
	f("<<-E\n      one\n      a $${x} {{a b}}\n    E", "{{a b}}", braces)
	f("<<-E\n      one\n      {{a b}} a $${x}\n    E", "{{a b}} a $${x}", "line 2, column 1: "+braces)
	f("<<-E\n\n      {{ok}}\n\n      grüß {{a b}}\n    E", "{{a b}}", braces)
	f("trimsuffix(<<-E\n      one\n      {{a\n    E\n  , \"\\n\")", "{{a", "{{ is never closed")
	f(`file("mail/broken.html")`, `file("mail/broken.html")`, "line 1, column 10: ")
}

// TestPlaceholdersInFiles: the decoder refuses what the API refuses, at its place.
func TestPlaceholdersInFiles(t *testing.T) {
	src := "template \"A\" {\n  name = \"A\"\n  subject_template = \"s\"\n  body_html = <<-EOT\n    <p>\n    <b style=\"{{a}}\">\n  EOT\n}\n"
	_, ds := hclfile.Decode("a.hcl", []byte(src), hclfile.Options{})
	if len(ds) != 1 || ds[0].Start.Line != 6 || ds[0].Start.Column != 15 || !strings.Contains(ds[0].Summary, "{{a}} cannot stand in a style attribute") {
		t.Errorf("%+v", ds)
	}
}

// TestLocales: what locale blocks declare, sorted by tag.
func TestLocales(t *testing.T) {
	src, err := os.ReadFile("testdata/good/locales.hcl")
	if err != nil {
		t.Fatal(err)
	}
	r, ds := hclfile.Decode("locales.hcl", src, hclfile.Options{ReadFile: mail})
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	html, err := mail("mail/welcome.html")
	if err != nil {
		t.Fatal(err)
	}
	want := catalog.Locales{{Tag: "de", SubjectTemplate: "Hallo", BodyHTML: string(html), BodyText: "Willkommen\n"},
		{Tag: "pt-BR", SubjectTemplate: "Olá", BodyText: "Bem-vindo"}}
	if got := r.Declared.Projects[0].Templates[0].Locales; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(r.Deps, []string{"mail/welcome.html"}) {
		t.Errorf("%q", r.Deps)
	}
}
