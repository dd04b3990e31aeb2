package configsrc_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A noteSink keeps the notes of removals and can refuse them.
type noteSink struct {
	*resolver.Resolver
	notes   [][]byte
	refuses error
}

func (s *noteSink) NoteRemovals(note []byte) error {
	s.notes = append(s.notes, slices.Clone(note))
	if s.refuses != nil {
		return s.refuses
	}
	return s.Resolver.NoteRemovals(note)
}

// TestRemovalNotes: only writes that remove a project or a domain write a note, which costs an fsync; without a note
// nothing is removed.
func TestRemovalNotes(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "a.hcl"), project("acme", "a.example", "b.example"))
	sink := &noteSink{Resolver: openResolver(t, "")}
	defer sink.Close()
	n := newNode(t, dir, nodeOptions{resolver: sink.Resolver, sink: sink})
	ctx, acme := context.Background(), catalog.DeriveProjectUUID("acme")
	update := func(change func(p *catalog.ProjectConfig)) func() error {
		return func() error {
			return updateProject(ctx, n.source, acme, func(p *catalog.ProjectConfig) error { change(p); return nil })
		}
	}
	remove := func() error {
		return deleteProject(ctx, n.source, acme, func(*catalog.ProjectConfig) error { return nil })
	}
	f := func(what string, notes int, do func() error) {
		t.Helper()
		before := len(sink.notes)
		must(t, do())
		if got := len(sink.notes) - before; got != notes {
			t.Errorf("%s: %d notes, want %d", what, got, notes)
		}
	}
	f("another name", 0, update(func(p *catalog.ProjectConfig) { p.Project.Name = "Other" }))
	f("another slug", 0, update(func(p *catalog.ProjectConfig) { p.Project.Slug = "other" }))
	f("a domain less", 2, update(func(p *catalog.ProjectConfig) { p.Domains = p.Domains[:1] }))
	f("a new project", 0, func() error {
		return createProject(ctx, n.source, &catalog.Project{Slug: "new", Name: "New", UUID: catalog.NewUUID(), Status: "DRAFT"})
	})

	sink.refuses = &catalog.Error{Code: catalog.CodeUnavailable, Message: "the store has failed"}
	was, err := os.ReadFile(file)
	must(t, err)
	if err := remove(); err != sink.refuses {
		t.Errorf("a removal without its note: %v", err)
	}
	if is, err := os.ReadFile(file); string(is) != string(was) || err != nil {
		t.Errorf("the file is %q, %v, and was %q", is, err, was)
	}
	must(t, update(func(p *catalog.ProjectConfig) { p.Project.Name = "Third" })())
	sink.refuses = nil
	f("a removed project", 2, remove)
}

// TestRemovalsOfACrash: the note of a killed process counts for the first load only.
func TestRemovalsOfACrash(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir, data := manyProjects(t, 20), filepath.Join(t.TempDir(), "store")
	n := newNode(t, dir, nodeOptions{data: data, loadOnly: true})
	n.stop()

	other := &noteSink{Resolver: openResolver(t, "")} // of a node with the same projects
	defer other.Close()
	n = newNode(t, manyProjects(t, 20), nodeOptions{resolver: other.Resolver, sink: other})
	for i := range 8 {
		uuid := catalog.DeriveProjectUUID(fmt.Sprintf("p%02d", i))
		must(t, deleteProject(context.Background(), n.source, uuid, func(*catalog.ProjectConfig) error { return nil }))
	}
	r := openResolver(t, data)
	must(t, r.NoteRemovals(bytes.Join(other.notes, nil)))
	must(t, r.Close())

	remove := func(from, to int) {
		for i := from; i < to; i++ {
			must(t, os.Remove(filepath.Join(dir, fmt.Sprintf("p%02d.hcl", i))))
		}
	}
	remove(0, 8)
	n = newNode(t, dir, nodeOptions{data: data, loadOnly: true})
	if st := n.source.Status(); st.Held != nil || st.Projects != 12 {
		t.Errorf("what the note lists: %+v", st)
	}
	n.stop()
	for i := range 8 {
		write(t, filepath.Join(dir, fmt.Sprintf("p%02d.hcl", i)), project(fmt.Sprintf("p%02d", i), fmt.Sprintf("p%02d.example", i)))
	}
	n = newNode(t, dir, nodeOptions{data: data, loadOnly: true})
	n.stop()
	remove(0, 8)
	n = newNode(t, dir, nodeOptions{data: data, loadOnly: true})
	if n.source.Status().Held == nil {
		t.Error("the note of the first start lets the second remove them, too")
	}
}
