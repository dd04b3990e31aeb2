package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/proposals"
	"fingerpost/resolver/catalog"
)

// newGitHouse serves a git repository with the project "acme"; writes are answered once they are committed.
func newGitHouse(t *testing.T) *house {
	t.Helper()
	h, _ := newGitFolder(t, "")
	return h
}

// newGitFolder is newGitHouse with more in the file. save saves a file of the folder, and takes it in.
func newGitFolder(t *testing.T, more string) (h *house, save func(name, text string)) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	text, id := catalog.NewKeyText()
	config := fmt.Sprintf("project \"acme\" {\n  name = \"Acme\"\n}\n\nkey \"all\" {\n  id    = %q\n  hash  = %q\n  allow = [\"resolve\", \"read\", \"write\", \"mail\", \"secrets\"]\n}\n\n"+
		"sealing {\n  recipients = [\"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\"]\n}\n",
		id, catalog.HashKeyText(text)) + more
	testrig.Git(t, filepath.Dir(dir), "init", "-q", "-b", "main", dir)
	if err := os.WriteFile(filepath.Join(dir, "all.hcl"), []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	testrig.Git(t, dir, "add", ".")
	testrig.Git(t, dir, "commit", "-q", "-m", "first")

	var source *configsrc.Source
	h = start(t, func(o *api.Options) {
		log := slog.New(slog.DiscardHandler)
		repo, err := gitrepo.Open(t.Context(), gitrepo.Options{Dir: dir, Ledger: o.Resolver, Logger: log, Merge: hcledit.Merge,
			Domain: "svc.example", Ack: gitrepo.AckCommit})
		if err != nil {
			t.Fatal(err)
		}
		source = configsrc.New(configsrc.Options{Dir: dir, Sink: o.Resolver, Logger: log, MaxDelete: 1, Journal: repo})
		if err := source.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		repo.Recover(t.Context(), source)
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = repo.Run(ctx) })
		running.Go(func() { source.Run(ctx) })
		t.Cleanup(func() {
			cancel()
			running.Wait()
			repo.Close()
		})
		o.Config = api.Config{Files: source, Explainer: source, Plan: planFiles, Git: ackedGit{repo}, Proposals: proposals.New(repo, o.Resolver, source, "")}
	}).with(text)
	return h, func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := source.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// An ackedGit waits for the commit of each write, as --git-ack commit has it.
type ackedGit struct{ *gitrepo.Repo }

func (g ackedGit) Committed(write int64) (commit string, pushed bool, overruled string) {
	ctx, cancel := context.WithTimeout(context.Background(), testrig.Patience)
	defer cancel()
	done := g.Wait(ctx, write)
	return done.Commit, done.Pushed, done.Overruled
}

func (g ackedGit) AwaitsPush() bool { return false }

func (g ackedGit) Has(commit string) (bool, error) { return g.Repo.Has(context.Background(), commit) }

// with takes another key for what needs one with all permissions.
func (h *house) with(key string) *house {
	h.all = key
	return h
}

// Every write is answered with its commit, and what is proposed with the Location and the ETag that it would have had.
func TestWritesWithGitAreDescribed(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	h := newGitHouse(t)
	project, err := h.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprint(project.ID)
	ids := map[string]string{"id": id, "projectId": id, "name": "app"}
	for _, headers := range [][]string{{"X-Propose: shop"}, nil} {
		for _, c := range describedCalls(t, ids) {
			if !c.takes("header", "X-Change-Message") || strings.Contains(c.path, "{") || c.method == http.MethodDelete ||
				headers != nil && !c.takes("header", "X-Propose") {
				continue
			}
			a := h.askDescribed(c, h.all, headers...)
			switch created := c.method == http.MethodPost && c.op.get("responses", "201").value != nil; {
			case a.StatusCode/100 != 2:
				t.Errorf("%s %s: %d %s", c.method, c.path, a.StatusCode, a.body)
			case headers == nil && created && a.Header.Get("X-Commit") == "":
				t.Errorf("%s %s has no X-Commit: %s", c.method, c.path, a.body)
			case headers != nil && created && a.Header.Get("Location") == "":
				t.Errorf("%s %s, proposed, has no Location: %s", c.method, c.path, a.body)
			}
		}
	}
	h.ask("GET", "/api/platform/proposals", h.all).check(t, http.StatusOK, "")
	h.ask("GET", "/api/platform/proposals/shop", h.all).check(t, http.StatusOK, "")
	h.ask("GET", "/api/platform/projects/"+id, h.all, "X-Propose: shop").check(t, http.StatusOK, "")
	h.ask("POST", "/api/platform/proposals/shop/apply", h.all).check(t, http.StatusConflict, "CONFLICT")
	h.ask("POST", "/api/platform/proposals/shop/update", h.all).check(t, http.StatusConflict, "CONFLICT")
	h.ask("POST", "/api/platform/proposals/shop/approve", h.all).check(t, http.StatusForbidden, "FORBIDDEN")
	h.ask("DELETE", "/api/platform/proposals/shop", h.all).check(t, http.StatusOK, "")
	h.askBody("PUT", "/api/platform/projects/"+id, h.all, `{"name":"Acme 2"}`, "X-Propose: again").check(t, http.StatusAccepted, "")
	h.ask("POST", "/api/platform/proposals/again/update", h.all).check(t, http.StatusUnprocessableEntity, "NOTHING_CHANGED")
	h.askBody("PUT", "/api/platform/projects/"+id, h.all, `{"name":"Acme 3"}`).check(t, http.StatusOK, "")
	h.ask("GET", "/api/platform/proposals/again", h.all).check(t, http.StatusOK, "")
	h.ask("POST", "/api/platform/proposals/again/update", h.all).check(t, http.StatusOK, "")
	applied := h.askBody("POST", "/api/platform/proposals/again/apply", h.all, `{"comment":"Read"}`)
	applied.check(t, http.StatusOK, "")
	h.ask("GET", "/api/platform/commits/"+applied.Header.Get("X-Commit"), h.all).check(t, http.StatusOK, "")
	h.ask("DELETE", "/api/platform/projects/"+id, h.all).check(t, http.StatusOK, "")
}
