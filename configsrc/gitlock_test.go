package configsrc_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

func rename(ctx context.Context, s *configsrc.Source, slug, name string) error {
	return updateProject(ctx, s, catalog.DeriveProjectUUID(slug), func(p *catalog.ProjectConfig) error {
		p.Project.Name = name
		return nil
	})
}

// TestWriteWaitsForGit: a write made while git commits succeeds when git has been quiet for a while; a write during a
// lock that stays is refused, and so are all others concurrently, not one after the other.
func TestWriteWaitsForGit(t *testing.T) {
	testrig.Thorough(t)
	testrig.Slow(t)
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "projects.d")
	file := write(t, filepath.Join(dir, "a.hcl"), named("a", "v1", "a.example"))
	n := newNode(t, dir, nodeOptions{})
	lock := write(t, filepath.Join(top, ".git/index.lock"), "")
	first := make(chan error, 1)
	go func() { first <- rename(t.Context(), n.source, "a", "v2") }()
	created := make(chan error, 1)
	go func() {
		created <- createProject(t.Context(), n.source, &catalog.Project{UUID: catalog.NewUUID(), Slug: "new", Name: "New", Status: catalog.StatusDraft})
	}()
	// A client with less patience: when it gives up, the others are waiting already.
	hasty, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var refused *catalog.Error
	if err := rename(hasty, n.source, "a", "never"); !errors.As(err, &refused) || refused.Code != catalog.CodeUnavailable {
		t.Errorf("a caller who gives up: %v", err)
	}
	if hasty.Err() == nil {
		t.Error("it was refused without waiting for git")
	}
	select {
	case err := <-first:
		t.Fatalf("beside git's lock: %v", err)
	default:
	}
	if got := read(t, file); got != named("a", "v1", "a.example") {
		t.Errorf("written while git was at work: %s", got)
	}
	gone := time.Now()
	must(t, os.Remove(lock))
	if err := errors.Join(<-first, <-created); err != nil {
		t.Error(err)
	}
	// It may not have gone for good: a stash takes the lock again and again. The file system's clock has a coarse tick.
	if quiet := time.Since(gone); quiet < 90*time.Millisecond {
		t.Errorf("they went through %v after git's lock had gone", quiet)
	}
	n.untilName("a.example", "v2")

	write(t, lock, "")
	var all sync.WaitGroup
	for i := range 40 { // one after the other, the last would exceed any test's time limit
		all.Go(func() {
			err := rename(t.Context(), n.source, "a", fmt.Sprint(i))
			var refused *catalog.Error
			if !errors.As(err, &refused) || refused.Code != catalog.CodeUnavailable || refused.Message != "git is at work in the config folder; try again in a moment" {
				t.Errorf("beside a lock that stays: %v", err)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testrig.Patience):
		t.Fatal("they wait one behind the other")
	}
	if got := n.name("a.example"); got != "v2" {
		t.Errorf("the name is %q", got)
	}
	onlyFiles(t, dir, "a.hcl", "new.hcl")
}

func TestOutcomePaths(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".deep/a.hcl"), named("a", "v1", "a.example")) // only the link is config
	must(t, os.Symlink(".deep/a.hcl", filepath.Join(dir, "link.hcl")))
	n := newNode(t, dir, nodeOptions{})
	name := func(p *catalog.ProjectConfig) error { p.Project.Name = "v2"; return nil }
	p := catalog.Project{UUID: catalog.NewUUID(), Slug: "new", Name: "New", Status: catalog.StatusDraft}
	a := &catalog.ProjectEdit{UUID: catalog.DeriveProjectUUID("a"), Change: name}
	for i, w := range []struct {
		edit catalog.Edit
		want string
	}{
		{catalog.Edit{Project: a, DryRun: true}, "[]"},
		{catalog.Edit{Project: a}, "[.deep/a.hcl]"},
		{catalog.Edit{Project: a}, "[]"}, // nothing changes
		{catalog.Edit{NewProject: &catalog.ProjectConfig{Project: p}}, "[new.hcl]"},
		{catalog.Edit{Project: &catalog.ProjectEdit{UUID: p.UUID, Remove: true}}, "[new.hcl]"},
	} {
		out, err := n.source.Write(t.Context(), &w.edit)
		must(t, err)
		if got := fmt.Sprint(out.Paths); got != w.want || (out.Preview != nil) != w.edit.DryRun {
			t.Errorf("edit %d: %s, preview %v, want %s", i, got, out.Preview, w.want)
		}
	}
	if _, err := n.source.Write(t.Context(), &catalog.Edit{Project: &catalog.ProjectEdit{UUID: catalog.NewUUID(), Change: name}}); err == nil {
		t.Error("a project that does not exist was changed")
	}
}

// TestWriteBesideUnfinishedGit: while git continues by itself a write waits; if git has stopped for a person's
// decision, the write is refused at once with the reason, and succeeds as soon as that is over. Aborting a rebase would
// remove the write.
func TestWriteBesideUnfinishedGit(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	for mark, of := range map[string]string{
		"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert", "rebase-merge/todo": "rebase", "rebase-apply/next": "rebase",
	} {
		t.Run(mark, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			dir := filepath.Join(top, "projects.d")
			file := write(t, filepath.Join(dir, "a.hcl"), named("a", "v1", "a.example"))
			write(t, filepath.Join(top, ".git/HEAD"), "ref: refs/heads/main\n")
			n := newNode(t, dir, nodeOptions{})
			if err := rename(t.Context(), n.source, "a", "v2"); err != nil {
				t.Fatal(err)
			}
			// It continues by itself, like the rebase of a pull: the write waits for it.
			write(t, filepath.Join(top, ".git", mark), "")
			during := make(chan error, 1)
			go func() { during <- rename(t.Context(), n.source, "a", "v2, too") }()
			select {
			case err := <-during:
				t.Fatalf("beside %s that goes on: %v", mark, err)
			case <-time.After(200 * time.Millisecond): // longer than git's folder otherwise has to be quiet
			}
			must(t, os.RemoveAll(filepath.Join(top, ".git", strings.Split(mark, "/")[0])))
			must(t, <-during)

			write(t, filepath.Join(top, ".git", mark), "")
			quietGit(t, top)
			for range 2 { // the second time uses the cached state
				err := rename(t.Context(), n.source, "a", "never")
				var refused *catalog.Error
				if !errors.As(err, &refused) || refused.Code != catalog.CodeUnavailable || !strings.HasPrefix(refused.Message, "a git "+of+" is not finished") {
					t.Fatalf("beside %s: %v", mark, err)
				}
			}
			if got := read(t, file); got != named("a", "v2, too", "a.example") {
				t.Errorf("written beside %s: %s", mark, got)
			}
			must(t, os.RemoveAll(filepath.Join(top, ".git", strings.Split(mark, "/")[0])))
			if err := rename(t.Context(), n.source, "a", "v3"); err != nil {
				t.Error(err)
			}
		})
	}
}

// quietGit makes git's folder look unchanged for a while.
func quietGit(t *testing.T, top string) {
	t.Helper()
	then := time.Now().Add(-time.Minute)
	must(t, os.Chtimes(filepath.Join(top, ".git"), then, then))
}
