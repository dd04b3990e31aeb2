package main

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestConsoleCannotWrite: a folder that takes no writes, and a disk that is full between the diff and the save. The reason
// is shown, what was entered stays, and no file changes.
func TestConsoleCannotWrite(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	files, admin, _ := consoleFiles(25)
	form := func(v *visitor, acme, name string) url.Values {
		t.Helper()
		v.ask("/console/edit?kind=project&project="+acme, nil)
		etag := regexp.MustCompile(`name="etag" value="([^"]*)"`).FindStringSubmatch(v.body)
		if etag == nil {
			t.Fatalf("no form: %s", cutMiddle(v.body, 800))
		}
		return url.Values{"token": {v.token()}, "kind": {"project"}, "project": {acme}, "etag": {html.UnescapeString(etag[1])}, "name": {name}, "slug": {"acme"},
			"status": {"ACTIVE"}, "description": {"Storefront and back office"}, "labels": {"plan=gold"}}
	}
	same := func(r *rig, was string) {
		t.Helper()
		if now, err := os.ReadFile(r.path("acme.hcl")); err != nil || string(now) != was {
			t.Errorf("the file is %q, %v", now, err)
		}
	}
	t.Run("read-only", func(t *testing.T) {
		t.Parallel()
		r := idleRig(t, t.TempDir(), files)
		r.flags = []string{"--read-only"}
		r.start()
		v := newVisitor(t, r.url)
		v.signIn(admin)
		v.ask("/console/edit", form(v, r.projectID("acme"), "Never"))
		v.expects(http.StatusConflict, "read-only", `value="Never"`)
		same(r, files["acme.hcl"])
	})
	t.Run("disk full", func(t *testing.T) {
		t.Parallel()
		if !canMount() {
			t.Skip("needs root, to mount a small file system")
		}
		r := idleRig(t, t.TempDir(), files)
		small := filepath.Join(r.dir, "small")
		must(t, os.Rename(r.path("."), small))
		must(t, os.Mkdir(r.path("."), 0o755))
		must(t, syscall.Mount("tmpfs", r.path("."), "tmpfs", 0, "size=8m"))
		t.Cleanup(func() { _ = syscall.Unmount(r.path("."), syscall.MNT_DETACH) })
		must(t, os.CopyFS(r.path("."), os.DirFS(small)))
		r.start()
		v := newVisitor(t, r.url)
		v.signIn(admin)
		v.ask("/console/edit", form(v, r.projectID("acme"), "Later"))
		v.expects(http.StatusOK, "what it changes")
		draft := v.res.Request.URL.Path
		filler := r.path("filler")
		f, err := os.Create(filler)
		must(t, err)
		for err == nil {
			_, err = f.Write(make([]byte, 1<<16))
		}
		must(t, f.Close())
		v.ask(draft, url.Values{"token": {v.token()}, "do": {"save"}})
		v.expects(http.StatusServiceUnavailable, "disk", "Later")
		same(r, files["acme.hcl"])
		must(t, os.Remove(filler))
		if err := poll(testrig.Patience, func() error {
			if v.ask(draft, url.Values{"token": {v.token()}, "do": {"save"}}); v.res.StatusCode != http.StatusOK {
				return errors.New(v.res.Status)
			}
			return nil
		}); err != nil {
			t.Fatalf("once there is room: %v: %s", err, cutMiddle(v.body, 800))
		}
		if now, err := os.ReadFile(r.path("acme.hcl")); err != nil || !strings.Contains(string(now), `"Later"`) {
			t.Errorf("the file is %q, %v", now, err)
		}
	})
}

// TestConsoleGit: with git a save names its commit, which is the person's, and a change can be proposed and applied.
func TestConsoleGit(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git")
	files, admin, _ := consoleFiles(25)
	r := idleRig(t, t.TempDir(), files)
	git := func(args ...string) string {
		t.Helper()
		return testrig.Git(t, r.dir, args...)
	}
	git("init", "-q", "-b", "main")
	git("add", "projects.d")
	git("commit", "-qm", "one")
	git("remote", "add", "origin", filepath.Join(r.dir, "nowhere.git"))
	git("config", "branch.main.remote", "origin")
	git("config", "branch.main.merge", "refs/heads/main")
	r.flags = []string{"--git", "--git-pull", "1s", "--git-ack", "commit", "--git-web", "https://git.example/acme"}
	r.start()
	acme := r.projectID("acme")
	v := newVisitor(t, r.url)
	v.ask("/console/sign-in", url.Values{"key": {admin}, "name": {"Ada Lovelace"}, "email": {"ada@example.com"}})
	token := v.token()
	change := func(name string, save ...string) {
		t.Helper()
		v.ask("/console/edit?kind=project&project="+acme, nil)
		etag := regexp.MustCompile(`name="etag" value="([^"]*)"`).FindStringSubmatch(v.body)
		if etag == nil {
			t.Fatalf("no form: %s", cutMiddle(v.body, 800))
		}
		v.ask("/console/edit", url.Values{"token": {token}, "kind": {"project"}, "project": {acme}, "etag": {html.UnescapeString(etag[1])}, "name": {name}, "slug": {"acme"},
			"status": {"ACTIVE"}, "description": {"Storefront and back office"}, "labels": {"plan=gold"}})
		v.expects(http.StatusOK, "what it changes")
		form := url.Values{"token": {token}}
		for i := 0; i < len(save); i += 2 {
			form.Set(save[i], save[i+1])
		}
		v.ask(v.res.Request.URL.Path, form)
	}
	change("Committed", "do", "save", "message", "Say what it is")
	v.expects(http.StatusOK, "Saved as commit "+strings.TrimSpace(git("rev-parse", "HEAD"))[:10])
	if got := git("log", "-1", "--format=%an <%ae> %s"); got != "Ada Lovelace <ada@example.com> Say what it is" {
		t.Errorf("the commit: %s", got)
	}
	if err := poll(testrig.Patience, func() error { // the trail learns it a moment later
		if v.ask("/console/changes?project="+acme, nil); !strings.Contains(v.body, `href="https://git.example/acme/commit/`+strings.TrimSpace(git("rev-parse", "HEAD"))+`"`) {
			return errors.New("no link to the commit")
		}
		return nil
	}); err != nil {
		t.Errorf("%v: %s", err, cutMiddle(v.body, 1500))
	}
	for _, bad := range []string{"No Such Name", "two..dots", "a.lock", "a."} { // as the API has it
		change("Proposed", "do", "propose", "proposal", bad)
		v.expects(http.StatusBadRequest, "A proposal needs a name")
	}
	change("Proposed", "do", "propose", "proposal", "rename-shop")
	v.expects(http.StatusOK, "Proposed on the branch propose/rename-shop", "can be applied", "<ins>Proposed</ins>")
	if strings.Contains(git("show", "HEAD:projects.d/acme.hcl"), "Proposed") {
		t.Error("the proposal is on main already")
	}
	// Live, it has changed since, which the proposal does not know of; who edits what it has, works in it.
	change("Proposed again", "do", "propose", "proposal", "rename-shop")
	v.expects(http.StatusPreconditionFailed, "The proposal rename-shop has changed this already")
	v.ask("/console/proposals/nothing", url.Values{"token": {token}, "do": {"enter"}})
	v.expects(http.StatusNotFound, "no such proposal")
	v.ask("/console/proposals/rename-shop", url.Values{"token": {token}, "do": {"enter"}})
	v.expects(http.StatusOK, "You work in the proposal")
	v.ask("/console/projects/"+acme, nil)
	v.expects(http.StatusOK, "You work in the proposal", "Proposed")
	change("Proposed again", "do", "save") // from a page that was open before
	v.expects(http.StatusOK, "Proposed on the branch propose/rename-shop", "Proposed again")
	v.ask("/console/edit?kind=project", nil)
	v.ask("/console/edit", url.Values{"token": {token}, "kind": {"project"}, "name": {"Only There"}, "slug": {"only-there"}, "status": {"DRAFT"}})
	v.expects(http.StatusOK, "what it changes", "Save in rename-shop")
	v.ask(v.res.Request.URL.Path, url.Values{"token": {token}, "do": {"propose"}})
	v.expects(http.StatusOK, "Proposed on the branch propose/rename-shop", "Only There")
	there := v.res.Request.URL.Path
	if there != "/console/projects/only-there" {
		t.Errorf("the page of the new project is %s", there)
	}
	id := regexp.MustCompile(`project=(\d+)`).FindStringSubmatch(v.body)[1]
	v.ask("/console/edit?kind=domain&project="+id, nil)
	v.ask("/console/edit", url.Values{"token": {token}, "kind": {"domain"}, "project": {id}, "domain": {"there.example"}, "active": {"yes"}})
	v.expects(http.StatusOK, "what it changes", "there.example")
	v.ask(v.res.Request.URL.Path, url.Values{"token": {token}, "do": {"propose"}})
	v.ask(there, nil)
	v.expects(http.StatusOK, "there.example")
	v.ask("/console/proposals/rename-shop", url.Values{"token": {token}, "do": {"leave"}})
	v.expects(http.StatusOK, "What is shown is live")
	v.ask(there, nil)
	v.expects(http.StatusNotFound)
	v.ask("/console/proposals/rename-shop", url.Values{"token": {token}, "do": {"apply"}})
	v.expects(http.StatusOK, "The proposal rename-shop is applied, and live.")
	v.ask(there, nil)
	v.expects(http.StatusOK, "Only There", "there.example")
	if !strings.Contains(git("show", "HEAD:projects.d/acme.hcl"), "Proposed") {
		t.Error("the proposal is not on main")
	}

	// Somebody drops the proposal that a person works in: the person is told, and sees what is live.
	change("Never", "do", "propose", "proposal", "gone-soon")
	v.ask("/console/proposals/gone-soon", url.Values{"token": {token}, "do": {"enter"}})
	if got := r.ask(http.MethodDelete, "/api/platform/proposals/gone-soon", admin, ""); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	v.ask("/console/projects/"+acme, nil)
	v.expects(http.StatusOK, "The proposal gone-soon is gone", "What is shown is live.", "<h1>Proposed again")
	if status := git("status", "--porcelain", "projects.d"); status != "" {
		t.Errorf("git status: %s", status)
	}
	v.ask("/console/live", nil)
	v.expects(http.StatusOK, `branch <span class="mono">main</span> at`)
	if err := poll(testrig.Patience, func() error { // the remote is not there
		if v.ask("/console/problems", nil); !strings.Contains(v.body, "<strong>Git:</strong>") {
			return errors.New("the remote's absence is no problem")
		}
		return nil
	}); err != nil {
		t.Errorf("%v: %s", err, cutMiddle(v.body, 1500))
	}
}

// TestConsoleOnEdge: a change that is made at an edge is the authority's, and waits in the session while that is away.
func TestConsoleOnEdge(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "lisbon")
	admin, id := catalog.NewKeyText()
	c.put("key-admin.hcl", fmt.Sprintf("key \"admin\" {\n  id = %q\n  hash = %q\n  allow = [\"read\", \"write\"]\n}\n", id, catalog.HashKeyText(admin)))
	edge := c.edge("lisbon", t.TempDir())
	acme := c.projectID("acme")
	edge.resolves("shop.acme.example")
	v := newVisitor(t, edge.url)
	if err := poll(testrig.Patience, func() error {
		if v.ask("/console/sign-in", url.Values{"key": {admin}}); v.res.StatusCode != http.StatusOK {
			return fmt.Errorf("%d", v.res.StatusCode)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	token := v.token()
	v.ask("/console/edit", url.Values{"token": {token}, "kind": {"domain"}, "project": {acme}, "domain": {"edge.acme.example"}, "active": {"yes"}})
	v.expects(http.StatusOK, `domain &#34;edge.acme.example&#34; {}`, "this is an edge")
	draft := v.res.Request.URL.Path
	c.halt()
	v.ask(draft, url.Values{"token": {token}, "do": {"save"}})
	v.expects(http.StatusServiceUnavailable, "authority", `domain &#34;edge.acme.example&#34; {}`)
	v.ask("/console/lookup?domain=shop.acme.example", nil)
	v.expects(http.StatusOK, "leads to the project")
	c.begin()
	if err := poll(testrig.Patience, func() error {
		if v.ask(draft, url.Values{"token": {token}, "do": {"save"}}); v.res.StatusCode != http.StatusOK {
			return fmt.Errorf("%d %s", v.res.StatusCode, cutMiddle(v.body, 500))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(c.path("acme.hcl")); err != nil || !strings.Contains(string(text), `domain "edge.acme.example" {}`) {
		t.Errorf("the authority's file: %v\n%s", err, text)
	}
	v.ask("/console/lookup?domain=edge.acme.example", nil)
	v.expects(http.StatusOK, "by its own record")
}
