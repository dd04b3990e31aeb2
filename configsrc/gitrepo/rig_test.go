package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// A rig is a clone with a config folder, a resolver, a source and a repo, as serve puts them together.
type rig struct {
	t        testing.TB
	clone    string // top of the work tree
	dir      string // the config folder
	resolver *resolver.Resolver
	source   *configsrc.Source
	repo     *gitrepo.Repo
	end      func()
	mu       sync.Mutex
	set      []gitrepo.Overruled // guarded by mu
}

const acme = `# The shop.
project "acme" {
  name   = "Acme"
  status = "ACTIVE"

  domain "acme.example" {}
}
`

func save(t testing.TB, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// newClone makes a repository with a first commit.
func newClone(t testing.TB) string {
	t.Helper()
	testrig.Slow(t)
	clone := filepath.Join(t.TempDir(), "clone")
	testrig.Git(t, filepath.Dir(clone), "init", "-q", "-b", "main", clone)
	save(t, clone, "projects.d/acme.hcl", acme)
	save(t, clone, "projects.d/teams/other.hcl", strings.NewReplacer("acme", "other", "Acme", "Other").Replace(acme))
	save(t, clone, "README", "about\n")
	testrig.Git(t, clone, "add", ".")
	testrig.Git(t, clone, "commit", "-q", "-m", "first")
	return clone
}

// start runs a service on a clone. end, or the end of the test, ends it.
func start(t testing.TB, clone string, change func(o *gitrepo.Options)) *rig {
	t.Helper()
	return startIn(t, clone, "projects.d", change)
}

// startIn is start for a config folder anywhere in the clone.
func startIn(t testing.TB, clone, dir string, change func(o *gitrepo.Options)) *rig {
	t.Helper()
	return startAt(t, clone, dir, nil, change)
}

// startAt is startIn with the clock of the Source; nil: the system's.
func startAt(t testing.TB, clone, dir string, now func() time.Time, change func(o *gitrepo.Options)) *rig {
	t.Helper()
	return startWith(t, clone, dir, now, change, func(s *configsrc.Source) gitrepo.Files { return s })
}

// startWith is startAt with what the Repo has for its Files.
func startWith(t testing.TB, clone, dir string, now func() time.Time, change func(o *gitrepo.Options),
	files func(*configsrc.Source) gitrepo.Files) *rig {
	t.Helper()
	r := &rig{t: t, clone: clone, dir: filepath.Join(clone, dir)}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	var err error
	// A process that was killed while it started another one leaves its lock for a moment.
	testrig.Eventually(t, "the store opens", func() bool {
		r.resolver, err = resolver.Open(resolver.Options{DataDir: clone + ".data", CacheBytes: 1 << 20, Logger: log})
		return !errors.Is(err, ledger.ErrLocked)
	})
	if err != nil {
		t.Fatal(err)
	}
	o := gitrepo.Options{Dir: r.dir, Ledger: r.resolver, Logger: log, Merge: hcledit.Merge, Domain: "svc.example", Ack: gitrepo.AckCommit,
		OnOverruled: func(o gitrepo.Overruled) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.set = append(r.set, o)
		}}
	if change != nil {
		change(&o)
	}
	if r.repo, err = gitrepo.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	place, err := folder.FindClone(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	r.source = configsrc.New(configsrc.Options{Dir: r.dir, Clone: place, Sink: r.resolver, Logger: log, MaxDelete: 1, Journal: r.repo,
		Hooks: configsrc.Hooks{AuthorOf: r.repo.AuthorOf, Now: now}})
	r.source.Watch()
	ctx, stop := context.WithCancel(context.Background())
	if err := r.source.Load(ctx); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = r.source.Run(ctx) })
	gitCtx, stopGit := context.WithCancel(context.Background())
	var committing sync.WaitGroup
	r.repo.Recover(ctx, files(r.source))
	committing.Go(func() { _ = r.repo.Run(gitCtx) })
	r.end = sync.OnceFunc(func() {
		stopGit()
		committing.Wait()
		r.repo.Close()
		stop()
		running.Wait()
		if err := r.resolver.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.end)
	return r
}

// write changes a project by slug and returns what became of it.
func (r *rig) write(by author, slug string, change func(p *catalog.ProjectConfig)) (gitrepo.Result, error) {
	p, err := r.resolver.ProjectBySlug(slug)
	if err != nil {
		return gitrepo.Result{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), testrig.Patience)
	defer cancel()
	edit := func(p *catalog.ProjectConfig) error { change(p); return nil }
	var out edits.Outcome
	for {
		out, err = r.source.Write(ctx, &catalog.Edit{By: by.Author, Message: by.Message, Project: &catalog.ProjectEdit{UUID: p.UUID, Change: edit}})
		var e *catalog.Error
		if !errors.As(err, &e) || e.Code != catalog.CodeUnavailable || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return gitrepo.Result{}, err
	}
	return r.repo.Wait(ctx, out.ID), nil
}

// mustWrite is write for a change of the name.
func (r *rig) mustWrite(by author, slug, name string) gitrepo.Result {
	r.t.Helper()
	got, err := r.write(by, slug, func(p *catalog.ProjectConfig) { p.Project.Name = name })
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// audited returns the commit that the audit trail names for a request.
func (r *rig) audited(request string) string {
	r.t.Helper()
	page, err := r.resolver.Audit(catalog.AuditQuery{RequestID: request, Limit: 1})
	if err != nil || len(page.Entries) == 0 {
		r.t.Fatalf("%s: %+v, %v", request, page, err)
	}
	return page.Entries[0].Commit
}

// An author is who makes a write, and what they say about it.
type author struct {
	catalog.Author
	Message string
}

func key(name, request string) author {
	return author{Author: catalog.Author{Door: catalog.DoorAPI, Actor: name, Key: name, RequestID: request}}
}

// clean fails unless git finds nothing to commit and nothing broken.
func (r *rig) clean() {
	r.t.Helper()
	if out := testrig.Git(r.t, r.clone, "status", "--porcelain"); out != "" {
		r.t.Errorf("git status:\n%s", out)
	}
	if out, err := testrig.TryGit(r.clone, "fsck", "--strict", "--no-dangling"); err != nil {
		r.t.Errorf("git fsck: %v\n%s", err, out)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func numbered(i int) string { return fmt.Sprintf("name %d", i) }
