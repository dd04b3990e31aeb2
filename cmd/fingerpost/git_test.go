package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// TestGit commits the writes of several clients, while a person has other changes in the works: no write fails, the
// history has all of them, and the tree is clean.
func TestGit(t *testing.T) {
	t.Parallel()
	testrig.Need(t, "git")
	r := newRig(t, nil)
	r.halt()
	git := func(args ...string) string {
		t.Helper()
		return testrig.Git(t, r.dir, args...)
	}
	if err := os.WriteFile(filepath.Join(r.dir, ".gitignore"), []byte("/.fingerpost/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-qm", "start")
	// A person's staged changes elsewhere stay theirs.
	if err := os.WriteFile(filepath.Join(r.dir, "notes.txt"), []byte("in the works\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("add", "notes.txt")
	r.flags = []string{"--git", "--git-domain", "svc.example"}
	r.start()

	const clients, each = 4, 6
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for n := range each {
				body := fmt.Sprintf(`{"name":"Client %d %d","slug":"c%d-%d"}`, c, n, c, n)
				got := r.ask(http.MethodPost, "/api/platform/projects", r.keys["write"], body, fmt.Sprintf("X-Request-Id: story-%d-%d", c, n))
				if got.status != http.StatusCreated {
					t.Errorf("%s: %d %s", body, got.status, got.body)
				}
			}
			// Here and gone, perhaps within one run.
			got := r.ask(http.MethodPost, "/api/platform/projects", r.keys["write"], fmt.Sprintf(`{"name":"Brief %d"}`, c))
			if got.status == http.StatusCreated {
				got = r.ask(http.MethodDelete, "/api/platform/projects/"+idOf(got), r.keys["write"], "")
			}
			if got.status != http.StatusOK {
				t.Errorf("brief: %d %s", got.status, got.body)
			}
		})
	}
	all.Wait()
	id := idOf(r.get("/api/platform/projects/by-slug/other"))
	if got := r.ask(http.MethodDelete, "/api/platform/projects/"+id, r.keys["write"], ""); got.status != http.StatusOK {
		t.Errorf("delete: %d %s", got.status, got.body)
	}
	r.halt() // runs what is pending
	if dirty := git("status", "--porcelain"); dirty != "A  notes.txt" {
		t.Errorf("the tree is not clean: %s\n%s", dirty, r.logged())
	}
	history := git("log", "--stat=200", "--format=%an: %B")
	for c := range clients {
		for n := range each {
			for _, want := range []string{fmt.Sprintf("c%d-%d.hcl", c, n), fmt.Sprintf("story-%d-%d", c, n)} {
				if !strings.Contains(history, want) {
					t.Errorf("the history lacks %s:\n%s", want, history)
				}
			}
			if content := git("show", fmt.Sprintf("HEAD:projects.d/c%d-%d.hcl", c, n)); !strings.Contains(content, fmt.Sprintf("Client %d %d", c, n)) {
				t.Errorf("committed: %s", content)
			}
		}
	}
	if !strings.Contains(history, "write: ") || !strings.Contains(history, "+ project c0-0") || strings.Contains(history, "notes.txt") {
		t.Errorf("history:\n%s", history)
	}

	// The commit is known when the answer waits for it, and an author and a message come from the caller.
	r.flags = []string{"--git", "--git-ack", "commit", "--git-domain", "svc.example"}
	r.start()
	got := r.ask(http.MethodPost, "/api/platform/projects", r.keys["write"], `{"name":"Asked"}`, "X-Actor: Ada <ada@example.com>", "X-Change-Message: Try it")
	if want := git("log", "-1", "--format=%H Ada <ada@example.com> Try it"); got.header.Get("X-Commit") == "" || want != git("log", "-1", "--format=%H %an <%ae> %s") ||
		!strings.HasPrefix(want, got.header.Get("X-Commit")) {
		t.Errorf("%d %q, %s", got.status, got.header.Get("X-Commit"), git("log", "-1"))
	}
	made := got.header.Get("X-Commit")
	if list := r.get("/api/platform/audit?limit=1&requestId=" + got.header.Get("X-Request-Id")); !strings.Contains(list.body, `"commit":"`+made+`"`) {
		t.Errorf("audit: %s", list.body)
	}
	if out, code := r.run("audit", "--url", r.url, "--key", r.keys["all"], "--limit", "1"); code != 0 || !strings.Contains(out, "  commit "+made[:12]+"  #") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	got = r.ask(http.MethodPost, "/api/platform/projects", r.keys["write"], `{"name":"Too long"}`, "X-Change-Message: "+strings.Repeat("x", 73))
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, "72 characters") {
		t.Errorf("%d %s", got.status, got.body)
	}
	res, err := http.Get(r.ops + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var st struct{ Git gitrepo.Status }
	if err := json.NewDecoder(res.Body).Decode(&st); err != nil || st.Git.Head != strings.TrimSpace(git("rev-parse", "HEAD")) || st.Git.Commits == 0 {
		t.Errorf("%+v, %v", st.Git, err)
	}
}

// TestPropose: a key that may only propose changes nothing that is live; another key applies what it has proposed.
func TestPropose(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	testrig.Need(t, "git")
	r := newRig(t, nil)
	project := "/api/platform/projects/" + idOf(r.get("/api/platform/projects/by-slug/other"))
	if got := r.ask(http.MethodPut, project, r.keys["write"], `{"name":"Later"}`, "X-Propose: later"); got.status != http.StatusConflict || !strings.Contains(got.body, "GIT_NOT_ENABLED") {
		t.Errorf("%d %s", got.status, got.body)
	}
	r.halt()
	git := func(args ...string) string {
		t.Helper()
		return testrig.Git(t, r.dir, args...)
	}
	if err := os.WriteFile(filepath.Join(r.dir, ".gitignore"), []byte("/.fingerpost/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-qm", "start")
	made, err := r.command(t.Context(), "keys", "create", "suggest", "--allow", "propose").Output()
	suggest := strings.TrimSpace(string(made))
	if err != nil || !strings.HasPrefix(suggest, "fpk_") {
		t.Fatalf("%v %s", err, made)
	}
	git("add", "-A")
	git("commit", "-qm", "key")
	r.flags = []string{"--git", "--git-ack", "commit", "--git-web", "https://git.example/config"}
	r.start()
	type proposal struct {
		Name, Branch, Commit, CompareURL string
		Mergeable                        bool
		Plan                             struct{ Changed bool }
	}
	list := func() (all []proposal) {
		t.Helper()
		var answer struct{ Data []proposal }
		if err := json.Unmarshal([]byte(r.get("/api/platform/proposals").body), &answer); err != nil {
			t.Fatal(err)
		}
		return answer.Data
	}
	propose := func(name, body string) {
		t.Helper()
		got := r.ask(http.MethodPut, project, r.keys["write"], body, "X-Propose: "+name, "X-Actor: Ada <ada@example.com>")
		var answer struct{ Data proposal }
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != http.StatusAccepted || answer.Data.Branch != "propose/"+name ||
			answer.Data.Commit != git("rev-parse", "propose/"+name) || !answer.Data.Plan.Changed || answer.Data.CompareURL != "https://git.example/config/compare/main...propose%2F"+name {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	propose("later", `{"name":"Later"}`)
	propose("later", `{"description":"soon"}`)
	if got := r.ask(http.MethodPut, project, suggest, `{"name":"Mine"}`); got.status != http.StatusForbidden {
		t.Errorf("a key that may only propose: %d %s", got.status, got.body)
	}
	if got := r.ask(http.MethodPut, project, suggest, `{"name":"Mine"}`, "X-Propose: mine"); got.status != http.StatusAccepted {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.ask(http.MethodDelete, "/api/platform/proposals/later", suggest, ""); got.status != http.StatusForbidden {
		t.Errorf("it drops another key's proposal: %d %s", got.status, got.body)
	}
	if got := r.ask(http.MethodDelete, "/api/platform/proposals/mine", suggest, ""); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
	propose("never", `{"name":"Never"}`)
	if got := r.get(project); !strings.Contains(got.body, `"name":"Other"`) {
		t.Errorf("a proposal is live: %s", got.body)
	}
	if got := git("log", "--format=%an %s", "main..propose/later"); got != "Ada other: description\nAda other: name" {
		t.Error(got)
	}
	if all := list(); len(all) != 2 || all[0].Name != "later" || !all[0].Mergeable {
		t.Errorf("%+v", all)
	}
	cli := func(want string, args ...string) {
		t.Helper()
		key := r.keys["write"]
		if args[1] == "list" || args[1] == "show" {
			key = r.keys["all"]
		}
		out, err := r.command(t.Context(), append(args, "--url", r.url, "--key", key)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	cli("description: none → \"soon\"", "propose", "show", "later")
	propose("brief", `{"name":"Brief"}`)
	cli("", "propose", "drop", "brief")
	if got := r.ask(http.MethodPut, project, r.keys["write"], `{"status":"ACTIVE"}`); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
	cli("later", "propose", "list")
	cli("", "propose", "apply", "later")
	if got := r.get(project); !strings.Contains(got.body, `"name":"Later"`) || !strings.Contains(got.body, `"soon"`) || !strings.Contains(got.body, "ACTIVE") {
		t.Errorf("applied: %s", got.body)
	}
	// The other one has become a conflict.
	if all := list(); len(all) != 1 || all[0].Mergeable {
		t.Errorf("%+v", all)
	}
	if got := r.ask(http.MethodPost, "/api/platform/proposals/never/apply", r.keys["write"], ""); got.status != http.StatusConflict {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.ask(http.MethodDelete, "/api/platform/proposals/never", r.keys["write"], ""); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.ask(http.MethodDelete, "/api/platform/proposals/never", r.keys["write"], ""); got.status != http.StatusNotFound {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := git("status", "--porcelain"); got != "" {
		t.Errorf("git status: %s", got)
	}
}

// The state of a proposal is that of its branch: what it creates can be changed in it, and preconditions and conflicts
// refer to it. What is live stays as it is.
func TestProposedState(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git")
	r := newRig(t, nil)
	r.halt()
	g := newGitRig(t, r)
	r.flags = []string{"--git", "--git-ack", "commit"}
	r.start()
	in := func(name, method, path, body string, header ...string) reply {
		t.Helper()
		key := r.keys["write"]
		if method == http.MethodGet {
			key = r.keys["all"]
		}
		return r.ask(method, path, key, body, append(header, "X-Propose: "+name)...)
	}
	expect := func(what string, got reply, status int, want ...string) reply {
		t.Helper()
		if got.status != status {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
		for _, w := range want {
			if !strings.Contains(got.body, w) {
				t.Errorf("%s: no %s in %s", what, w, got.body)
			}
		}
		return got
	}
	const projects, settings = "/api/platform/projects", "/service-settings"

	// A project that is created in it, and changed in it.
	made := expect("create", in("shop", http.MethodPost, projects, `{"name":"New Shop"}`), http.StatusAccepted, `"branch":"propose/shop"`, "new-shop")
	shop := made.header.Get("Location")
	expect("not live", r.get(shop), http.StatusNotFound)
	read := expect("in the proposal", in("shop", http.MethodGet, shop, ""), http.StatusOK, `"New Shop"`)
	expect("a stale If-Match", in("shop", http.MethodPut, shop, `{"name":"Shop"}`, `If-Match: "other"`), http.StatusPreconditionFailed)
	changed := expect("change", in("shop", http.MethodPut, shop, `{"name":"Shop"}`, "If-Match: "+read.header.Get("ETag")), http.StatusAccepted)
	expect("the former If-Match", in("shop", http.MethodPut, shop, `{"name":"Again"}`, "If-Match: "+read.header.Get("ETag")), http.StatusPreconditionFailed)
	expect("its settings", in("shop", http.MethodPut, shop+settings, `{"smsEnabled":true}`), http.StatusAccepted)
	domain := expect("a domain", in("shop", http.MethodPost, shop+"/domains", `{"domain":"shop.example"}`), http.StatusAccepted, "shop.example")
	expect("the domain again", in("shop", http.MethodPost, shop+"/domains", `{"domain":"shop.example"}`), http.StatusConflict)
	expect("the domains", in("shop", http.MethodGet, shop+"/domains", ""), http.StatusOK, `"shop.example"`)
	expect("a dry run", in("shop", http.MethodPut, shop+"?dryRun=1", `{"name":"Dry"}`), http.StatusOK, `+  name = \"Dry\"`)
	for _, query := range []string{"", "?q=new-shop", "?page=1&limit=50", "?page=1&limit=50&view=summary", "?sort=name", "?q=shop.exam"} {
		expect("the list "+query, in("shop", http.MethodGet, projects+query, ""), http.StatusOK, `"slug":"new-shop"`, `"name":"Shop"`)
	}
	expect("its number", in("shop", http.MethodGet, projects+"?page=9&limit=50", ""), http.StatusOK,
		fmt.Sprintf(`"meta":{"total":%d,`, 1+strings.Count(r.get(projects).body, `"slug"`)))
	expect("the summary", in("shop", http.MethodGet, projects+"?page=1&limit=50&q=new-shop&view=summary", ""), http.StatusOK, `"primaryDomain":"shop.example"`)
	for _, query := range []string{"", "?q=shop", "?page=1&limit=50", "?sort=domain"} {
		expect("all domains "+query, in("shop", http.MethodGet, "/api/platform/domains"+query, ""), http.StatusOK, `"domain":"shop.example"`)
	}
	expect("everything of it", in("shop", http.MethodGet, shop+"?view=full", ""), http.StatusOK, `"domain":"shop.example"`, `"smsEnabled":true`)
	expect("the audit trail", in("shop", http.MethodGet, "/api/platform/audit", ""), http.StatusBadRequest, "always live")
	expect("the live list", r.get(projects+"?q=new-shop"), http.StatusOK, `"data":[]`)
	if changed.header.Get("ETag") == read.header.Get("ETag") || domain.header.Get("Location") == "" {
		t.Errorf("%v, %v", changed.header, domain.header)
	}

	// Another proposal does not know of it, and its changes are its own.
	other := projects + "/" + idOf(r.get(projects+"/by-slug/other"))
	live := r.get(other)
	expect("elsewhere", in("rename", http.MethodGet, other, ""), http.StatusNotFound, "no such proposal")
	expect("the live ETag", in("rename", http.MethodPut, other, `{"name":"First"}`, "If-Match: "+live.header.Get("ETag")), http.StatusAccepted)
	expect("the live ETag again", in("rename", http.MethodPut, other, `{"name":"Second"}`, "If-Match: "+live.header.Get("ETag")), http.StatusPreconditionFailed)
	expect("the new project", in("rename", http.MethodGet, shop, ""), http.StatusNotFound)
	expect("still in the first", in("shop", http.MethodGet, shop, ""), http.StatusOK, `"Shop"`)
	expect("the domain of the first", in("rename", http.MethodPost, other+"/domains", `{"domain":"shop.example"}`), http.StatusAccepted)
	expect("live all the time", r.get(other), http.StatusOK, `"name":"Other"`)

	// A write that was answered is in what is proposed next, and one that is made while the proposal is open is not.
	expect("a write", r.ask(http.MethodPut, other, r.keys["write"], `{"description":"live"}`), http.StatusOK)
	expect("after the write", in("later", http.MethodPut, other, `{"name":"Later"}`, "If-Match: "+r.get(other).header.Get("ETag")), http.StatusAccepted)
	if got := in("rename", http.MethodGet, other, ""); strings.Contains(got.body, "live") {
		t.Errorf("a later write is in the proposal: %s", got.body)
	}

	// A client that sends its body slowly holds nobody up.
	slow := r.dial()
	defer slow.Close()
	_, err := fmt.Fprintf(slow, "PUT %s HTTP/1.1\r\nHost: x\r\nX-PLATFORM-KEY: %s\r\nX-Propose: shop\r\nContent-Length: 20\r\n\r\n{", shop, r.keys["write"])
	must(t, err)
	expect("next to it", in("shop", http.MethodPut, shop, `{"description":"next"}`), http.StatusAccepted)
	must(t, slow.SetReadDeadline(time.Now().Add(time.Millisecond)))
	if n, err := slow.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the slow client was answered first: %d, %v", n, err)
	}

	// Somebody adds to the branch by git.
	work := filepath.Join(t.TempDir(), "work")
	g.git(r.dir, "clone", "-q", "-b", "propose/shop", ".", work)
	must(t, os.WriteFile(filepath.Join(work, "projects.d", "hand.hcl"), []byte("project \"hand\" {\n  name = \"By hand\"\n}\n"), 0o644))
	g.git(work, "add", "-A")
	g.git(work, "commit", "-qm", "by hand")
	g.git(work, "push", "-q", "origin", "propose/shop")
	expect("what was pushed", in("shop", http.MethodGet, projects+"/by-slug/hand", ""), http.StatusOK, "By hand")
	must(t, os.WriteFile(filepath.Join(work, "projects.d", "hand.hcl"), []byte("project {\n"), 0o644))
	g.git(work, "commit", "-qam", "broken")
	g.git(work, "push", "-q", "origin", "propose/shop")
	must(t, os.WriteFile(filepath.Join(work, "projects.d", "hand.hcl"), []byte("project \"hand\" {\n  name = \"By hand\"\n}\n"), 0o644))
	r.kill()
	r.start()
	expect("a broken file", in("shop", http.MethodGet, projects+"/by-slug/hand", ""), http.StatusNotFound, "do not load: hand.hcl")
	g.git(work, "commit", "-qam", "mended")
	g.git(work, "push", "-q", "origin", "propose/shop")

	// The project keeps its id when it goes live.
	expect("apply", r.ask(http.MethodPost, "/api/platform/proposals/shop/apply", r.keys["write"], ""), http.StatusOK)
	expect("live", r.get(shop), http.StatusOK, `"name":"Shop"`)
	expect("its settings", r.get(shop+settings), http.StatusOK, `"smsEnabled":true`)
	expect("by hand", r.get(projects+"/by-slug/hand"), http.StatusOK)

	for _, path := range []string{"/api/platform/audit", "/api/platform/keys", "/api/platform/proposals", "/api/platform/events"} {
		if got := in("shop", http.MethodGet, path, ""); got.status != http.StatusBadRequest || !strings.Contains(got.body, "X-Propose") {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
	}
	if got := in("shop", http.MethodPost, "/api/platform/keys", `{"name":"x"}`); got.status != http.StatusBadRequest {
		t.Errorf("a key in a proposal: %d %s", got.status, got.body)
	}
}

// Set-ups that cannot work end the start, with all that is wrong.
func TestGitFlags(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git")
	r := newRig(t, nil)
	r.halt()
	refused := func(code int, flags []string, want ...string) {
		t.Helper()
		cmd := r.command(t.Context(), append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}, flags...)...)
		out, _ := cmd.CombinedOutput()
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%q: no %q in\n%s", flags, w, out)
			}
		}
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("%q: exit code %d", flags, got)
		}
	}
	refused(2, []string{"--git-push", "--git-pull", "10ms", "--propose-max-age", "1s", "--propose-approvals", "21"}, "--git-push needs --git", "--git-pull needs --git", "at least 1s",
		"--propose-max-age needs --git", "--propose-max-age must be at least 1m", "--propose-approvals needs --git",
		"--propose-approvals must be 0 to 20")
	refused(2, []string{"--git", "--git-ack", "soon", "--git-domain", "a b"}, "file, commit or push", "must be a domain")
	refused(2, []string{"--git", "--git-ack", "push"}, "needs --git-push")
	refused(3, []string{"--git"}, "is not in a git repository")
	git := func(args ...string) {
		t.Helper()
		testrig.Git(t, r.dir, args...)
	}
	git("init", "-q", "-b", "main")
	git("config", "core.sparseCheckout", "true")
	if err := os.WriteFile(filepath.Join(r.dir, ".gitignore"), []byte("*.hcl\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(3, []string{"--git", "--git-sign-key", "nowhere", "--git-push"}, "sparse", "ignores", "nowhere", "no upstream")
}

func idOf(r reply) string { return regexp.MustCompile(`"id":(\d+)`).FindStringSubmatch(r.body)[1] }
