package configsrc_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/configsrc"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// TestLargeBodies: a body above 64 KiB that is new goes to a file of its own next to the config file, and stays there.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "shops/acme.hcl"), "project \"acme\" {\n  name = \"Acme\" # as it was\n\n"+
		"  template \"OLD\" {\n    name             = \"n\"\n    subject_template = \"s\"\n    body_text        = \"short\"\n  }\n}\n")
	write(t, filepath.Join(dir, "shops/acme.NEW.html"), "a person's")
	n := newNode(t, dir, nodeOptions{})
	large := func(letter string) string { return strings.Repeat(letter, limit-1) + "\r\n" }
	put := func(change func(p *catalog.ProjectConfig)) {
		t.Helper()
		must(t, updateProject(context.Background(), n.source, catalog.DeriveProjectUUID("acme"),
			func(p *catalog.ProjectConfig) error { change(p); return nil }))
	}
	bodies := func(files map[string]string, lines ...string) {
		t.Helper()
		text := read(t, config)
		for _, line := range lines {
			if !strings.Contains(text, line) {
				t.Errorf("the config file lacks %s:\n%.600s", line, text)
			}
		}
		for name, want := range files {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
				t.Errorf("%s has %.20q and %d bytes, %v; want %.20q and %d bytes", name, b, len(b), err, want, len(want))
			}
		}
	}
	create := func(p *catalog.ProjectConfig, code, html, text string) {
		c := catalog.Template{Code: code, ProjectID: p.Project.ID, UUID: catalog.DeriveTemplateUUID(p.Project.UUID, code),
			Active: true, Name: "n", SubjectTemplate: "s", BodyHTML: html, BodyText: text}
		c.ID = catalog.DeriveID(catalog.KindTemplate, c.UUID)
		p.Templates = append(p.Templates, c)
	}

	// A new template; a name that is taken gets a number.
	put(func(p *catalog.ProjectConfig) { create(p, "NEW", large("a"), large("b")) })
	bodies(map[string]string{"shops/acme.NEW.html": "a person's", "shops/acme.NEW-2.html": large("a"),
		"shops/acme.NEW.txt": large("b")},
		"  name = \"Acme\" # as it was\n", "body_html        = file(\"shops/acme.NEW-2.html\")\n",
		"body_text        = file(\"shops/acme.NEW.txt\")\n")
	// A body in the config file that becomes large moves. The other one stays.
	put(func(p *catalog.ProjectConfig) { p.Templates[0].BodyText = large("c") })
	bodies(map[string]string{"shops/acme.OLD.txt": large("c")}, "body_text        = file(\"shops/acme.OLD.txt\")\n")
	// One that is in a file stays there, whatever its size.
	put(func(p *catalog.ProjectConfig) { p.Templates[0].BodyText = "short" })
	bodies(map[string]string{"shops/acme.OLD.txt": "short"}, "body_text        = file(\"shops/acme.OLD.txt\")\n")
	// 64 KiB are not above 64 KiB.
	put(func(p *catalog.ProjectConfig) { create(p, "EDGE", strings.Repeat("d", limit), "") })
	bodies(nil, "body_html        = \"ddd")
	if _, err := os.Stat(filepath.Join(dir, "shops/acme.EDGE.html")); err == nil {
		t.Error("a body of 64 KiB went to a file")
	}
	n.untilState(configsrc.StateOK)
	// A dry run leaves no file.
	dry := func(p *catalog.ProjectConfig) error {
		create(p, "DRY", large("e"), "")
		return nil
	}
	out, err := n.source.Write(t.Context(), &catalog.Edit{DryRun: true, Project: &catalog.ProjectEdit{UUID: catalog.DeriveProjectUUID("acme"), Change: dry}})
	must(t, err)
	preview := out.Preview
	if len(preview.Files) != 2 || preview.Files[0].Path != "shops/acme.DRY.html" || preview.Files[0].Before != nil {
		t.Errorf("the preview has %d files", len(preview.Files))
	}
	names, err := filepath.Glob(filepath.Join(dir, "shops/*"))
	if err != nil || len(names) != 5 {
		t.Errorf("the folder has %q, %v", names, err)
	}
}

// TestMergeLargeBody: an edit that moves a body to a file is made on other content as that, not as text.
func TestMergeLargeBody(t *testing.T) {
	t.Parallel()
	file := func(name, body string) string {
		return "project \"acme\" {\n  name = \"" + name + "\"\n\n  template \"T\" {\n    name             = \"n\"\n" +
			"    subject_template = \"s\"\n    body_text        = " + body + "\n  }\n}\n"
	}
	const named = `file("acme.T.txt")`
	merged := func(before, after, theirs string) {
		t.Helper()
		out, err := hcledit.Merge("acme.hcl", []byte(before), []byte(after), []byte(theirs), false)
		if want := file("theirs", named); err != nil || string(out) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, out, want)
		}
	}
	merged(file("ours", `"short"`), file("ours", named), file("theirs", `"short"`))
	i := strings.Index(file("ours", ""), "\n  template")
	bare := func(name string) string { return file(name, "")[:i+len(name)-len("ours")] + "}\n" }
	merged(bare("ours"), file("ours", named), bare("theirs"))
}
