package configsrc_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestRewrittenAgainAndAgain has a program write and truncate a file every 20 ms, while another file of the folder is
// saved. Nearly all looks see it empty; the project answers at every moment.
func TestRewrittenAgainAndAgain(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	dir := t.TempDir()
	whole := project("acme", "acme.example")
	file := write(t, filepath.Join(dir, "acme.hcl"), whole)
	n := newNode(t, dir, nodeOptions{})
	end := time.Now().Add(time.Duration(testrig.Size(t, 4000, 500)) * time.Millisecond)
	var writers sync.WaitGroup
	defer writers.Wait()
	writers.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for time.Now().Before(end) {
			for _, text := range []string{whole, ""} {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Error(err)
					return
				}
			}
			<-tick.C
		}
		if err := os.WriteFile(file, []byte(whole), 0o644); err != nil {
			t.Error(err)
		}
	})
	writers.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; time.Now().Before(end); i++ {
			if err := os.WriteFile(filepath.Join(dir, "other.hcl"), []byte(named("other", "Other "+string(rune('a'+i%26)))), 0o644); err != nil {
				t.Error(err)
				return
			}
			<-tick.C
		}
	})
	asked := 0
	for ; time.Now().Before(end); asked++ {
		if got := n.name("acme.example"); got != "acme" {
			t.Fatalf("question %d: %s", asked, got)
		}
	}
	testrig.Figure(t, "%d questions", asked)
	// A file that stays empty is accepted.
	writers.Wait()
	write(t, file, "")
	n.untilName("acme.example", string(catalog.CodeNotFound))
}

// A save of the same size with an old mtime, as some tools make it, is found as fast as any other.
func TestSavedWithTimeSetBack(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "acme.hcl"), named("acme", "Name 1", "acme.example"))
	n := newNode(t, dir, nodeOptions{})
	n.until("the stamp can be trusted", func() bool {
		must(t, n.source.StatSweep(n.ctx))
		return !n.source.Racy("acme.hcl")
	})
	unseen(t, file, named("acme", "Name 2", "acme.example"))
	must(t, n.source.StatSweep(n.ctx))
	n.untilName("acme.example", "Name 2")
}

// A file that the API has created is known by its stamp: looking at it again stores nothing.
func TestNewFileIsAppliedOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.hcl"), project("acme", "acme.example"))
	n, sink := countingNode(t, dir, memoryResolver(t))
	before, _ := sink.count()
	must(t, createProject(n.ctx, n.source, &catalog.Project{UUID: catalog.NewUUID(), Slug: "other", Name: "Other", Status: catalog.StatusDraft}))
	must(t, n.source.Reload(n.ctx))
	n.until("the stamp can be trusted", func() bool {
		must(t, n.source.StatSweep(n.ctx))
		return !n.source.Racy("other.hcl")
	})
	if after, _ := sink.count(); after != before+1 {
		t.Errorf("%d changes for one write", after-before)
	}
}
