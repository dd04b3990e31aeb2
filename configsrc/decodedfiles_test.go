package configsrc_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/configsrc/edits"
	"fingerpost/resolver/catalog"
)

// TestRecentFiles: a write finds the decoded form of a file that was written before, and never another content's.
func TestRecentFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "acme.hcl"), "project \"acme\" {\n  name = \"Acme\"\n}\n")
	write(t, filepath.Join(dir, "hello.txt"), "Hello\n")
	mail := write(t, filepath.Join(dir, "mail.hcl"),
		"project \"mail\" {\n  name = \"Mail\"\n\n  template \"W\" {\n    name = \"W\"\n    subject_template = \"Hi\"\n    body_text = file(\"hello.txt\")\n  }\n}\n")
	n := newNode(t, dir, nodeOptions{})
	rename := func(slug, name string) {
		t.Helper()
		err := updateProject(context.Background(), n.source, catalog.DeriveProjectUUID(slug), func(p *catalog.ProjectConfig) error {
			p.Project.Name = name
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := func(want ...string) {
		t.Helper()
		if paths, _, err := n.source.Recent(); err != nil || !slices.Equal(paths, want) {
			t.Errorf("%q are kept, want %q; %v", paths, want, err)
		}
	}
	kept()
	rename("acme", "First")
	kept("acme.hcl")
	write(t, path, strings.Replace(read(t, path), "First", "Saved", 1)+"\n# by a person\n")
	if err := n.source.Reload(context.Background()); err != nil {
		t.Fatal(err)
	}
	rename("acme", "Second")
	if got := read(t, path); !strings.Contains(got, "\"Second\"") || !strings.Contains(got, "# by a person") {
		t.Errorf("the file is\n%s", got)
	}
	kept("acme.hcl")
	rename("mail", "Post") // the text may change without the file
	write(t, filepath.Join(dir, "hello.txt"), "Good morning\n")
	if err := n.source.Reload(context.Background()); err != nil {
		t.Fatal(err)
	}
	rename("mail", "Mail again")
	if got := read(t, mail); !strings.Contains(got, "Mail again") {
		t.Errorf("the file is\n%s", got)
	}
	kept("acme.hcl")
}

// TestRecentFilesAreBounded: the files that were written last push out the others.
func TestRecentFilesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	comment := "# " + strings.Repeat("x", edits.MaxDecodedBytes/5) + "\n"
	for i := range 8 {
		write(t, filepath.Join(dir, fmt.Sprintf("p%d.hcl", i)), fmt.Sprintf("%sproject \"p%d\" {\n  name = \"P\"\n}\n", comment, i))
	}
	write(t, filepath.Join(dir, "large.hcl"), comment+comment+"project \"large\" {\n  name = \"P\"\n}\n")
	n := newNode(t, dir, nodeOptions{})
	for _, slug := range []string{"p0", "p1", "p2", "p3", "p4", "p5", "large", "p6", "p7", "p6"} {
		err := updateProject(context.Background(), n.source, catalog.DeriveProjectUUID(slug), func(p *catalog.ProjectConfig) error {
			p.Project.Name += "!"
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	paths, bytes, err := n.source.Recent()
	slices.Sort(paths)
	if want := []string{"p4.hcl", "p5.hcl", "p6.hcl", "p7.hcl"}; err != nil || !slices.Equal(paths, want) {
		t.Errorf("%q are kept, want %q; %v", paths, want, err)
	}
	if bytes <= 0 || bytes > edits.MaxDecodedBytes {
		t.Errorf("%d bytes are kept", bytes)
	}
}
