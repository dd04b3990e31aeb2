package hclfile_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// samePart decodes each project of a valid file alone, and as one of all. It returns how many could be found alone.
func samePart(t *testing.T, src []byte) (alone int) {
	t.Helper()
	whole, ds := hclfile.Decode("a.hcl", src, hclfile.Options{})
	for _, d := range ds {
		if d.Severity == hclfile.Error {
			return 0
		}
	}
	lines := func(r *hclfile.Result, refs []catalog.Ref) (all []hclfile.Lines) {
		for _, ref := range refs {
			all = append(all, r.Lines(ref))
		}
		return all
	}
	for i := range whole.Declared.Projects {
		want := &whole.Declared.Projects[i]
		part := hclfile.DecodeProject("a.hcl", src, want.Project.UUID)
		if part == nil {
			continue
		}
		alone++
		if got := &part.Declared.Projects[0]; !reflect.DeepEqual(got, want) {
			t.Errorf("alone the project is %+v, want %+v, of:\n%s", got, want, src)
		}
		refs := (&catalog.Declared{Projects: []catalog.ProjectConfig{*want}}).Refs()
		if got, want := lines(part, refs), lines(whole, refs); !reflect.DeepEqual(got, want) {
			t.Errorf("alone its lines are %v, want %v, of:\n%s", got, want, src)
		}
		at := part.Lines(catalog.Ref{Kind: catalog.KindProject, Name: want.Project.Slug})
		block := func(src []byte, before int) string {
			return strings.Join(strings.Split(string(hclfile.Masked(src)), "\n")[at.Block-1-before:at.End-before], "\n")
		}
		if got, want := block(part.Source.Src, part.Before()), block(src, 0); got != want {
			t.Errorf("alone its block is\n%s\nwant\n%s", got, want)
		}
	}
	if want := whole.Declared.Defaults; want != nil {
		if part := hclfile.DecodeDefaults("a.hcl", src); part != nil {
			alone++
			ref := catalog.Ref{Kind: catalog.KindServiceSettings}
			if !reflect.DeepEqual(part.Declared.Defaults, want) || !reflect.DeepEqual(part.Lines(ref), whole.Lines(ref)) {
				t.Errorf("alone the defaults are %+v, want %+v, of:\n%s", part.Declared.Defaults, want, src)
			}
		}
	}
	return alone
}

// A block is found alone exactly where it is the same as in the whole file.
func TestDecodeProject(t *testing.T) {
	const b = "project \"b\" {\n  name = \"B\"\n  domain \"b.example\" {}\n}\n"
	mail := func(open, body, end string) string {
		return "project \"a\" {\n  name = \"A\"\n  template \"X\" {\n    name = \"x\"\n    subject_template = \"s\"\n    body_text = " + open + "\n" + body + "\n" + end + "\n  }\n}\n"
	}
	f := func(src string, want int) {
		t.Helper()
		if _, ds := hclfile.Decode("a.hcl", []byte(src), hclfile.Options{}); len(ds) > 0 && want > 0 {
			t.Errorf("not valid: %v", ds)
		}
		if got := samePart(t, []byte(src)); got != want {
			t.Errorf("%d blocks were found alone, want %d, in:\n%s", got, want, src)
		}
	}
	f(b, 1)
	f("# project \"b\" {\n/* {\n\" */\n"+strings.ReplaceAll(b, "\n", "\r\n"), 1)
	f("defaults {\n  service_settings {\n    mail_enabled = true\n  }\n}\n"+b, 2)
	f(mail("<<-EOT", "project \"b\" {\n  name = \"fake\"\n}\n \" {", "    EOT")+b, 2)
	f(mail("<<EOT", "} \" /* EOTX? ${", "EOT")+b, 0) // an interpolation: not valid
	f(mail("<<EOT", "} \" /* $${x} %%{", "EOT")+b, 2)
	f(mail("<<EOT", "EOTX", "EOT")+b, 0) // looks like its end
	f("project \"a\" {\n  name = \"{ \\\" $${ # //\"\n} # }\n"+b, 2)
	f("/* x */ project \"a\" {\n  name = \"A\"\n}\n"+b, 1)
	f("project \"a\" {\n  name = \"A\"\n  uuid = \"0190f3c8-1111-7aaa-8bbb-0123456789ab\"\n}\n"+b, 2)
	f("project \"a\" {\n  name = \"A\"\n  labels = {\n    x = \"{\"\n  }\n} /* {\n */\n"+b, 1) // a comment that goes on
	if hclfile.DecodeProject("a.hcl", []byte(b), catalog.DeriveProjectUUID("c")) != nil {
		t.Error("a project that the file does not declare was found")
	}
}

// FuzzDecodeProject: whatever stands around a block, alone it is the same or is not found.
func FuzzDecodeProject(f *testing.F) {
	for _, src := range seeds(f) {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) < 64<<10 {
			samePart(t, src)
		}
	})
}

// BenchmarkDecodeProject decodes one project in the middle of a file of 400, alone and with the whole file.
func BenchmarkDecodeProject(b *testing.B) {
	var text strings.Builder
	for i := range 400 {
		fmt.Fprintf(&text, "project \"p%d\" {\n  name = \"P\"\n  template \"X\" {\n    name = \"x\"\n    subject_template = \"s\"\n"+
			"    body_text = <<-EOT\n%s    EOT\n  }\n}\n", i, strings.Repeat("      Hello {{userName}}, your order is on its way.\n", 20))
	}
	src, id := []byte(text.String()), catalog.DeriveProjectUUID("p200")
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			if hclfile.DecodeProject("a.hcl", src, id) == nil {
				b.Fatal("not found")
			}
		}
	})
	b.Run("whole file", func(b *testing.B) {
		for b.Loop() {
			hclfile.Decode("a.hcl", src, hclfile.Options{})
		}
	})
}
