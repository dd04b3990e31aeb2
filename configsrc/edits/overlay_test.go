package edits_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// newOverlay returns an Overlay with these files over an empty live state.
func newOverlay(t *testing.T, files map[string]string) *edits.Overlay {
	t.Helper()
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	layer, err := r.Overlay(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(layer.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
	d := &compare.Difference{After: func(path string) ([]byte, error) {
		if text, is := files[path]; is {
			return []byte(text), nil
		}
		return nil, nil
	}}
	for path, text := range files {
		d.Files = append(d.Files, catalog.FileEdit{Path: path, After: []byte(text)})
	}
	slices.SortFunc(d.Files, func(a, b catalog.FileEdit) int { return strings.Compare(a.Path, b.Path) })
	base := edits.NewBase(edits.Options{Live: r, Rules: func() hclfile.Rules { return hclfile.Rules{Today: "2026-01-31"} }})
	o, err := edits.NewOverlay(base, d, layer)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// rename is the edit of a project's name.
func rename(slug, name string) *catalog.Edit {
	return &catalog.Edit{By: catalog.Author{Door: catalog.DoorAPI}, Project: &catalog.ProjectEdit{
		UUID:   catalog.DeriveProjectUUID(slug),
		Change: func(p *catalog.ProjectConfig) error { p.Project.Name = name; return nil }}}
}

// TestWritesFollowEachOther: a write edits what the write before has left, changes its line alone, and a dry run, a write
// without a change and a refused one leave nothing.
func TestWritesFollowEachOther(t *testing.T) {
	t.Parallel()
	const acme = "# kept\nproject \"acme\" {\n  name = \"Acme\" # by hand\n}\n"
	o := newOverlay(t, map[string]string{"acme.hcl": acme, "beta.hcl": "project \"beta\" {\n  name = \"Beta\"\n}\n"})
	out, err := o.Write(context.Background(), rename("acme", "First"))
	if err != nil || !slices.Equal(out.Paths, []string{"acme.hcl"}) {
		t.Fatalf("%v, %v", out, err)
	}
	dry := rename("acme", "Dry")
	dry.DryRun = true
	out, err = o.Write(context.Background(), dry)
	if err != nil || out.Preview == nil || !strings.Contains(out.Preview.Diff(), "+  name = \"Dry\" # by hand") || len(out.Paths) > 0 {
		t.Errorf("a dry run: %v, %v", out, err)
	}
	if out, err = o.Write(context.Background(), rename("acme", "First")); err != nil || len(out.Paths) > 0 {
		t.Errorf("a write without a change: %v, %v", out, err)
	}
	taken := &catalog.Project{UUID: catalog.NewUUID(), Slug: "beta", Name: "Other", Status: catalog.StatusActive}
	_, err = o.Write(context.Background(), &catalog.Edit{NewProject: &catalog.ProjectConfig{Project: *taken}})
	var refusal *catalog.Error
	if !errors.As(err, &refusal) || refusal.Code != catalog.CodeConflict {
		t.Errorf("a slug that is taken: %v", err)
	}
	if _, err = o.Write(context.Background(), rename("acme", "Second")); err != nil {
		t.Fatal(err)
	}
	writes := o.Writes()
	if len(writes) != 2 {
		t.Fatalf("%d writes, want 2", len(writes))
	}
	last := writes[1].Files
	if len(last) != 1 || string(last[0].Before) != strings.Replace(acme, "Acme", "First", 1) ||
		string(last[0].After) != strings.Replace(acme, "Acme", "Second", 1) {
		t.Errorf("the last write is %q", last)
	}
	if b, err := o.Block(catalog.DeriveProjectUUID("acme")); err != nil || b.Line != 2 || !strings.Contains(b.Text, "Second") {
		t.Errorf("the block is %v, %v", b, err)
	}
}

// TestBrokenFile: a file of the branch that does not load is named, and its project is in no file.
func TestBrokenFile(t *testing.T) {
	t.Parallel()
	o := newOverlay(t, map[string]string{"acme.hcl": "project \"acme\" {\n"})
	if broken := o.Broken(); !slices.Equal(broken, []string{"acme.hcl"}) {
		t.Errorf("%q are broken", broken)
	}
	if path, found := o.FileOf(catalog.DeriveProjectUUID("acme")); found {
		t.Errorf("the project is in %s", path)
	}
	var refusal *catalog.Error
	if _, err := o.Write(context.Background(), rename("acme", "Other")); !errors.As(err, &refusal) || refusal.Code != catalog.CodeNotFound {
		t.Errorf("a write: %v", err)
	}
}
