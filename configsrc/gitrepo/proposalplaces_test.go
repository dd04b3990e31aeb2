package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/proposals"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// newSet makes the proposals of a repository with one project and the proposal "x" of a person.
func newSet(t *testing.T) *proposals.Set {
	t.Helper()
	testrig.Slow(t)
	clone := filepath.Join(t.TempDir(), "clone")
	save := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(clone, "acme.hcl"), []byte("project \"acme\" {\n  name = \""+name+"\"\n}\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	testrig.Git(t, filepath.Dir(clone), "init", "-q", "-b", "main", clone)
	save("Acme")
	testrig.Git(t, clone, "add", ".")
	testrig.Git(t, clone, "commit", "-q", "-m", "first")
	testrig.Git(t, clone, "switch", "-q", "-c", "propose/x")
	save("Proposed")
	testrig.Git(t, clone, "commit", "-q", "-a", "-m", "propose")
	testrig.Git(t, clone, "switch", "-q", "main")

	log := slog.New(slog.DiscardHandler)
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := gitrepo.Open(t.Context(), gitrepo.Options{Dir: clone, Ledger: r, Logger: log, Merge: hcledit.Merge, Domain: "svc.example"})
	if err != nil {
		t.Fatal(err)
	}
	source := configsrc.New(configsrc.Options{Dir: clone, Sink: r, Logger: log, MaxDelete: 1, Journal: repo})
	if err := source.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	repo.Recover(t.Context(), source)
	t.Cleanup(func() {
		repo.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return proposals.New(repo, r, source, "")
}

func pass(*proposals.Proposal) error { return nil }

// A key has at most two calls at work, and the calls of others go on next to them.
func TestOneKeyTakesTwoPlaces(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	view := func(ctx context.Context, key string, read func()) error {
		return s.View(ctx, key, "x", pass, func(*resolver.Overlay, *edits.Overlay) error { read(); return nil })
	}
	end, inside, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	for range 2 {
		go func() { ended <- view(t.Context(), "loud", func() { inside <- struct{}{}; <-end }) }()
		<-inside
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var e *catalog.Error
	if err := view(ctx, "loud", func() { t.Error("a third call of the key is at work") }); !errors.As(err, &e) || e.Code != catalog.CodeUnavailable {
		t.Errorf("the third call: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), testrig.Patience/4)
	defer cancel()
	if err := view(ctx, "quiet", func() {}); err != nil {
		t.Errorf("another key: %v", err)
	}
	if list, err := s.List(ctx, "quiet", func(*proposals.Proposal) bool { return true }); err != nil || len(list) != 1 {
		t.Errorf("another key's list: %v, %v", list, err)
	}
	if _, err := s.Look(ctx, "quiet", "quiet", "x", pass, nil); err != nil {
		t.Errorf("another key's look: %v", err)
	}
	close(end)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Writes to one proposal come one after the other, and those to another do not wait for them.
func TestWritesOfTwoProposals(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	nothing := func(*resolver.Overlay, *edits.Overlay) error { return nil }
	end, inside, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := s.Propose(t.Context(), "one", proposals.Key{ID: "loud"}, pass, func(*resolver.Overlay, *edits.Overlay) error {
			close(inside)
			<-end
			return nil
		})
		ended <- err
	}()
	<-inside
	unchanged := func(what string, err error) {
		t.Helper()
		var e *catalog.Error
		if !errors.As(err, &e) || e.Code != catalog.CodeNothingChanged {
			t.Errorf("%s: %v", what, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testrig.Patience/4)
	defer cancel()
	_, err := s.Propose(ctx, "two", proposals.Key{ID: "quiet"}, pass, nothing)
	unchanged("another proposal", err)
	brief, cancelBrief := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelBrief()
	var e *catalog.Error
	if _, err := s.Propose(brief, "one", proposals.Key{ID: "quiet"}, pass, nothing); !errors.As(err, &e) || e.Code != catalog.CodeUnavailable {
		t.Errorf("the same proposal: %v", err)
	}
	close(end)
	unchanged("the first", <-ended)
	_, err = s.Propose(ctx, "one", proposals.Key{ID: "quiet"}, pass, nothing)
	unchanged("the same proposal afterwards", err)
}

// Writes, reads, lists and looks of several keys at the same time see whole states.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	acme := catalog.DeriveProjectUUID("acme")
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			key, name := fmt.Sprint("key", i%3), fmt.Sprint("p", i)
			for n := range 3 {
				want := fmt.Sprintf("%s %d", name, n)
				_, err := s.Propose(t.Context(), name, proposals.Key{ID: key}, pass, func(_ *resolver.Overlay, files *edits.Overlay) error {
					_, err := files.Write(t.Context(), &catalog.Edit{Project: &catalog.ProjectEdit{UUID: acme,
						Change: func(p *catalog.ProjectConfig) error { p.Project.Name = want; return nil }}})
					return err
				})
				if err != nil {
					t.Errorf("%s: %v", want, err)
				}
				if err := s.View(t.Context(), key, name, pass, func(o *resolver.Overlay, _ *edits.Overlay) error {
					p, err := o.ProjectBySlug("acme")
					if err == nil && p.Name != want {
						err = fmt.Errorf("the project is %q, want %q", p.Name, want)
					}
					return err
				}); err != nil {
					t.Error(err)
				}
				if _, err := s.List(t.Context(), key, func(p *proposals.Proposal) bool { return p.Mergeable }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
