package hcledit_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

// bodyPieces are what random bodies are made of.
var bodyPieces = []string{"$", "$$", "${", "$${", "%", "%%{", "%{", "{", "}", `"`, `\`, `\n`, `\u0024`, "\n", "\n\n", "\r", "\r\n", "\t", " ", "   ", "EOT", "\nEOT\n",
	"<<-EOT\n", "#", "//", "/*", "a", "ü", "é", "\u0085", "\u2028", "\u202e", "\ufeff", "👩‍👩‍👧", "e\u0301", "\u0301", "\u212a", "\u037e", "\uac00\u11a8", " \u0300", "<<<<<<< a\n=======\n>>>>>>> b\n", "trimsuffix(", "{{a}}", "fpk_"}

// sayBody writes a text as the body of a new template, and over a heredoc and a quoted text, into a file with these line ends, and
// reads it back.
func sayBody(t *testing.T, body, eol string) {
	t.Helper()
	read := func(how string, src []byte, err error) {
		t.Helper()
		if errors.Is(err, hcledit.ErrLimit) && len(body) > 100_000 {
			return
		}
		if err != nil {
			t.Fatalf("%s: %.300q: %v", how, body, err)
		}
		res, ds := hclfile.Decode("a.hcl", src, hclfile.Options{})
		if ds.HasErrors() || len(res.Declared.Templates) != 1 || res.Declared.Templates[0].BodyText != body {
			t.Fatalf("%s, %q: %.300q is written as\n%.500s\n%s", how, eol, body, src, text(ds))
		}
	}
	u := catalog.DeriveTemplateUUID(catalog.UUID{}, "A")
	src, err := hcledit.WriteTemplates([]catalog.Template{{ID: catalog.DeriveID(catalog.KindTemplate, u), UUID: u, Code: "A", Name: "A",
		SubjectTemplate: "s", BodyText: body, Active: true}})
	read("new", src, err)
	for how, old := range map[string]string{"quoted": `"old"`, "heredoc": "<<-EOT\n    old\n    text\n  EOT", "kept heredoc": "<<EOT\nold\nEOT"} {
		file := strings.ReplaceAll("template \"A\" {\n  name = \"A\"\n  subject_template = \"s\"\n  body_text = "+old+"\n}\n", "\n", eol)
		src, err := hcledit.SetAttribute([]byte(file), hcledit.BlockPath{"template", "A"}, "body_text", hcledit.Literal(body))
		read("over "+how, src, err)
	}
}

// legalBody makes a body that the API accepts of any text.
func legalBody(s string) string {
	s = strings.Map(func(r rune) rune {
		if catalog.UnfitForBody(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	_, ps := template.ParsePlain("bodyText", s)
	if len(ps) > 0 {
		s = strings.ReplaceAll(s, "{", "(")
	}
	if start, _ := catalog.FindKeyText([]byte(s)); s == "" || start >= 0 {
		s = "x"
	}
	return s
}

// TestBodiesReadBack writes random bodies, short ones and ones of up to 100 kB.
func TestBodiesReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 17))
	for n := range testrig.Size(t, 400, 15) {
		var b strings.Builder
		most, pieces := 1+r.IntN(12), 1+r.IntN(len(bodyPieces))
		if n%40 == 0 {
			most = testrig.Part(40_000)
		}
		from := r.IntN(len(bodyPieces))
		for range most {
			b.WriteString(bodyPieces[(from+r.IntN(pieces))%len(bodyPieces)])
		}
		sayBody(t, legalBody(b.String()), [...]string{"\n", "\r\n"}[n%2])
	}
}

func FuzzBodiesReadBack(f *testing.F) {
	for _, s := range bodyPieces {
		f.Add(s+"x\n"+s, true)
	}
	f.Fuzz(func(t *testing.T, s string, crlf bool) {
		eol := "\n"
		if crlf {
			eol = "\r\n"
		}
		sayBody(t, legalBody(s), eol)
	})
}
