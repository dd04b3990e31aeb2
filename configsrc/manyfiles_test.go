package configsrc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestManyFilesAtOnce changes hundreds of files in one reload: all are accepted except those with an error of their
// own, and each error is reported.
func TestManyFilesAtOnce(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	const files = 400
	dir := manyProjects(t, files)
	n := newNode(t, dir, nodeOptions{data: filepath.Join(t.TempDir(), "store")})
	for i := range files {
		slug := fmt.Sprintf("p%02d", i)
		text := named(slug, "second", slug+".example")
		switch i {
		case 17:
			text = strings.Replace(text, "{", "{\n  nonsense = true\n", 1)
		case 18:
			text = strings.Replace(text, "project", "# a comment\nproject", 1)
		case 19: // takes another file's name
			text = named(slug, "second", "p20.example")
		}
		write(t, filepath.Join(dir, slug+".hcl"), text)
	}
	must(t, n.source.Reload(n.ctx))
	for i := range files {
		want := "second"
		if i == 17 || i == 19 {
			want = fmt.Sprintf("p%02d", i)
		}
		if got := n.name(fmt.Sprintf("p%02d.example", i)); got != want {
			t.Errorf("p%02d.example is %q, want %q", i, got, want)
		}
	}
	n.problem("p17.hcl", "nonsense")
	n.problem("p19.hcl", "p20.example")
}

// TestConflictsOfManyFiles: each conflict of a copied folder of many files is reported with both positions.
func TestConflictsOfManyFiles(t *testing.T) {
	testrig.Thorough(t)
	testrig.Slow(t)
	t.Parallel()
	const files = 400
	dir := manyProjects(t, files)
	n := newNode(t, dir, nodeOptions{data: filepath.Join(t.TempDir(), "store")})
	for i := range files {
		slug := fmt.Sprintf("p%02d", i)
		write(t, filepath.Join(dir, "copy", slug+".hcl"), project(slug, slug+".example"))
	}
	n.until("each copy is quarantined", func() bool { return n.source.Status().Quarantined == files })
	status := n.source.Status()
	told := map[string]bool{}
	for _, d := range status.Problems {
		if strings.Contains(d.Summary, "is declared in") {
			told[d.File] = true
		}
	}
	if len(told) == 0 || status.Errors < files {
		t.Errorf("%d errors, of which %d files are named; want one for each of %d files", status.Errors, len(told), files)
	}
}

// TestReloadReadsBodiesOfManyFiles: a requested reload reads the files that file() names again, whatever their stamps
// are.
func TestReloadReadsBodiesOfManyFiles(t *testing.T) {
	dir := manyProjects(t, 400)
	body := func(text string) string { return "<p>" + text + " {{userName}}</p>" }
	write(t, filepath.Join(dir, "mail.html"), body("one"))
	write(t, filepath.Join(dir, "p17.hcl"), "project \"p17\" {\n  name = \"p17\"\n  domain \"p17.example\" {}\n"+
		"  template \"T\" {\n    name = \"T\"\n    subject_template = \"Hello\"\n    body_html = file(\"mail.html\")\n  }\n}\n")
	outside := filepath.Join(t.TempDir(), "link")
	must(t, os.Link(filepath.Join(dir, "mail.html"), outside))
	n := newNode(t, dir, nodeOptions{})
	unseen(t, outside, body("two"))
	must(t, n.source.Reload(n.ctx))
	p, err := n.resolver.ProjectBySlug("p17")
	must(t, err)
	found, err := n.resolver.OwnTemplate(p.ID, "T")
	must(t, err)
	if found.BodyHTML != body("two") {
		t.Errorf("the body is %q", found.BodyHTML)
	}
}
