package gitrepo_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	r := start(t, newClone(t), nil)
	by := key("ci", "req-1")
	by.Actor = "Ada Lovelace <ada@example.com>"
	got, err := r.write(by, "acme", func(p *catalog.ProjectConfig) {
		p.Project.Name = "Acme Shop"
		p.Domains = append(p.Domains, catalog.Domain{Name: "new.acme.example", Active: true, UUID: catalog.DeriveDomainUUID(p.Project.UUID, "new.acme.example")})
	})
	if err != nil || got.Commit != testrig.Git(t, r.clone, "rev-parse", "HEAD") || r.audited("req-1") != got.Commit {
		t.Fatalf("%+v, %v; the audit trail has %s", got, err, r.audited("req-1"))
	}
	want := `Ada Lovelace <ada@example.com>
fingerpost <fingerpost@svc.example>
acme: name, + domain new.acme.example

Fingerpost-Key: ci
Fingerpost-Request: req-1
Fingerpost-Generation: 2
`
	if msg := testrig.Git(t, r.clone, "log", "-1", "--format=%an <%ae>%n%cn <%ce>%n%B"); msg+"\n" != want {
		t.Errorf("got\n%s\nwant\n%s", msg, want)
	}
	if files := testrig.Git(t, r.clone, "show", "--format=", "--name-only"); files != "projects.d/acme.hcl" {
		t.Errorf("changed: %s", files)
	}
	r.clean()

	// A client that is nobody's has the key's address; its message is the subject.
	by = key("deploy", "req-2")
	by.Message = "Rename the shop"
	r.mustWrite(by, "other", "Others")
	if got := testrig.Git(t, r.clone, "log", "-1", "--format=%an <%ae> %s"); got != "deploy <deploy@svc.example> Rename the shop" {
		t.Error(got)
	}
	// No message hides the trailers: git takes one to end at such lines.
	for i, message := range []string{"--- a/acme.hcl", "# " + strings.Repeat("-", 24) + " >8 " + strings.Repeat("-", 24)} {
		by = key("ci", fmt.Sprintf("req-2-%d", i))
		by.Message = message
		r.mustWrite(by, "other", message)
		whole := testrig.Git(t, r.clone, "log", "-1", "--format=%B")
		file := filepath.Join(t.TempDir(), "message")
		if err := os.WriteFile(file, []byte(whole+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		parsed := testrig.Git(t, r.clone, "interpret-trailers", "--parse", file)
		logged := testrig.Git(t, r.clone, "log", "-1", "--format=%(trailers:key=Fingerpost-Key,valueonly)")
		if !strings.Contains(parsed, "Fingerpost-Key: ci") || strings.TrimSpace(logged) != "ci" {
			t.Errorf("%s: the trailers are %q and %q", message, parsed, logged)
		}
	}
	// A project comes and goes, with its file.
	p := &catalog.Project{Name: "New", Slug: "new", Status: catalog.StatusDraft, UUID: catalog.NewUUID()}
	if _, err := r.source.Write(t.Context(), &catalog.Edit{By: key("ci", "req-3").Author, NewProject: &catalog.ProjectConfig{Project: *p}}); err != nil {
		t.Fatal(err)
	}
	subject := func(want string) {
		t.Helper()
		testrig.Eventually(t, want, func() bool { return testrig.Git(t, r.clone, "log", "-1", "--format=%s") == want })
		testrig.Eventually(t, "nothing pending", func() bool { return r.repo.Status().Pending == 0 })
		r.clean()
	}
	subject("+ project new")
	if _, err := r.source.Write(t.Context(), &catalog.Edit{By: key("ci", "req-4").Author, Project: &catalog.ProjectEdit{UUID: p.UUID, Remove: true}}); err != nil {
		t.Fatal(err)
	}
	subject("- project new")
	if files := testrig.Git(t, r.clone, "show", "--format=", "--name-status"); files != "D\tprojects.d/new.hcl" {
		t.Errorf("changed: %s", files)
	}
	if left, err := r.resolver.PendingWrites(); err != nil || len(left) > 0 {
		t.Errorf("%d notes are left, %v", len(left), err)
	}
}

// A proof of a domain is a commit of the service that a person understands, and its entry in the trail names it.
func TestCommitOfAProof(t *testing.T) {
	t.Parallel()
	r := start(t, newClone(t), nil)
	uuid := catalog.DeriveProjectUUID("acme")
	f := func(from, to, reason, action, want string) {
		t.Helper()
		if err := r.source.SetVerified(t.Context(), uuid, "acme.example", from, to, reason); err != nil {
			t.Fatal(err)
		}
		got := func() string { return testrig.Git(t, r.clone, "log", "-1", "--format=%an <%ae>%n%s%n%b") }
		testrig.Eventually(t, want, func() bool { return strings.HasPrefix(got(), want) })
		testrig.Eventually(t, "nothing pending", func() bool { return r.repo.Status().Pending == 0 })
		if strings.Contains(got(), "Fingerpost-Key") || strings.Count(got(), "Fingerpost-Request: ") != 1 {
			t.Errorf("the message is\n%s", got())
		}
		page, err := r.resolver.Audit(catalog.AuditQuery{Action: action, Page: 1, Limit: 1})
		if err != nil || len(page.Entries) != 1 || page.Entries[0].Commit != testrig.Git(t, r.clone, "rev-parse", "HEAD") || page.Entries[0].Actor != "" {
			t.Errorf("the trail has %+v, %v", page.Entries, err)
		}
		r.clean()
	}
	f("", "2026-11-24", "", catalog.AuditVerify, "fingerpost <fingerpost@svc.example>\ndomain acme.example is proven\n")
	f("2026-11-24", "lost", "no server has the record", catalog.AuditLost,
		"fingerpost <fingerpost@svc.example>\ndomain acme.example has lost its proof: no server has the record\n")
	if got := testrig.Git(t, r.clone, "show", "--format=", "--stat"); !strings.Contains(got, "1 insertion(+), 1 deletion(-)") {
		t.Errorf("the commit changes %s", got)
	}
}

// What people have staged, edited or not added stays theirs.
func TestCommitNextToPeople(t *testing.T) {
	t.Parallel()
	r := start(t, newClone(t), nil)
	save(t, r.clone, "projects.d/acme.hcl", strings.Replace(acme, "# The shop.", "# The shop. Ask Pat.", 1))
	save(t, r.clone, "README", "staged\n")
	save(t, r.clone, "notes.txt", "untracked\n")
	testrig.Git(t, r.clone, "add", "README")
	save(t, r.clone, "README", "staged, and edited again\n")
	r.mustWrite(key("ci", "r1"), "acme", "Acme Shop")
	if got := testrig.Git(t, r.clone, "show", "HEAD:projects.d/acme.hcl") + "\n"; got != strings.Replace(acme, `"Acme"`, `"Acme Shop"`, 1) {
		t.Errorf("the commit has\n%s", got)
	}
	want := strings.NewReplacer(`"Acme"`, `"Acme Shop"`, "# The shop.", "# The shop. Ask Pat.").Replace(acme)
	if got := read(t, filepath.Join(r.dir, "acme.hcl")); got != want {
		t.Errorf("the file has\n%s", got)
	}
	if got := testrig.Git(t, r.clone, "status", "--porcelain"); got != "MM README\n M projects.d/acme.hcl\n?? notes.txt" {
		t.Errorf("git status:\n%s", got)
	}
	// A staged edit of the same file stays as it was staged.
	testrig.Git(t, r.clone, "add", "projects.d/acme.hcl")
	staged := testrig.Git(t, r.clone, "show", ":projects.d/acme.hcl")
	r.mustWrite(key("ci", "r2"), "acme", "Acme Market")
	if got := testrig.Git(t, r.clone, "show", ":projects.d/acme.hcl"); got != staged {
		t.Errorf("the index has\n%s", got)
	}
	// A write to a project that is not committed at all waits for its person.
	save(t, r.clone, "projects.d/mine.hcl", strings.ReplaceAll(acme, "cme", "ine"))
	testrig.Eventually(t, "the new project is served", func() bool { _, err := r.resolver.ProjectBySlug("aine"); return err == nil })
	waiting := make(chan gitrepo.Result)
	go func() {
		got, err := r.write(key("ci", "r3"), "aine", func(p *catalog.ProjectConfig) { p.Project.Name = "Mine now" })
		if err != nil {
			t.Error(err)
		}
		waiting <- got
	}()
	testrig.Eventually(t, "the status tells", func() bool { return strings.Contains(r.repo.Status().CommitError, "mine.hcl") })
	r.mustWrite(key("ci", "r4"), "other", "goes on")
	testrig.PatientGit(t, r.clone, "add", "projects.d/mine.hcl")
	testrig.PatientGit(t, r.clone, "commit", "-q", "-m", "mine")
	if got := <-waiting; got.Commit == "" || !strings.Contains(testrig.Git(t, r.clone, "show", "HEAD:projects.d/mine.hcl"), "Mine now") {
		t.Errorf("%+v", got)
	}
}

func TestCommitsOfManyClients(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := start(t, newClone(t), func(o *gitrepo.Options) { o.Ack = gitrepo.AckFile })
	const each = 10
	var clients sync.WaitGroup
	for _, c := range []struct{ key, slug string }{{"a", "acme"}, {"b", "other"}, {"c", "acme"}} {
		clients.Go(func() {
			for i := range each {
				if _, err := r.write(key(c.key, c.key+numbered(i)), c.slug, func(p *catalog.ProjectConfig) { p.Project.Name = c.key + numbered(i) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	testrig.Eventually(t, "all is committed", func() bool { return r.repo.Status().Pending == 0 })
	r.clean()
	log := testrig.Git(t, r.clone, "log", "--format=%an%n%(trailers:key=Fingerpost-Request,valueonly)%(trailers:key=Fingerpost-Key,valueonly)")
	for _, k := range []string{"a", "b", "c"} {
		for i := range each {
			if n := strings.Count(log+"\n", "\n"+k+numbered(i)+"\n"); n != 1 {
				t.Errorf("write %s is %d times in the history", k+numbered(i), n)
			}
		}
	}
	if n := r.repo.Status().Commits; n >= 3*each {
		t.Errorf("%d commits of %d writes: nothing was gathered", n, 3*each)
	}
}

func TestUnbornDetachedAndSwitched(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	clone := filepath.Join(t.TempDir(), "clone")
	testrig.Git(t, filepath.Dir(clone), "init", "-q", "-b", "trunk", clone)
	save(t, clone, "projects.d/acme.hcl", acme)
	r := start(t, clone, nil)
	p := &catalog.Project{Name: "New", Slug: "new", Status: catalog.StatusDraft, UUID: catalog.NewUUID()}
	if _, err := r.source.Write(t.Context(), &catalog.Edit{By: key("ci", "r1").Author, NewProject: &catalog.ProjectConfig{Project: *p}}); err != nil {
		t.Fatal(err)
	}
	testrig.Eventually(t, "the first commit is ours", func() bool {
		out, err := testrig.TryGit(clone, "log", "--format=%an")
		return err == nil && strings.TrimSpace(out) == "ci"
	})
	if got := testrig.Git(t, clone, "ls-tree", "-r", "--name-only", "HEAD"); got != "projects.d/new.hcl" {
		t.Errorf("the first commit has %s", got)
	}
	testrig.PatientGit(t, clone, "add", ".")
	testrig.PatientGit(t, clone, "commit", "-q", "-m", "mine")
	testrig.PatientGit(t, clone, "checkout", "-q", "--detach")
	before := testrig.Git(t, clone, "rev-parse", "HEAD")
	done := make(chan gitrepo.Result)
	go func() { done <- r.mustWrite(key("ci", "r2"), "acme", "Detached") }()
	testrig.Eventually(t, "the status says so", func() bool { return strings.Contains(r.repo.Status().CommitError, "detached") })
	if got := testrig.Git(t, clone, "rev-parse", "HEAD"); got != before {
		t.Error("a detached HEAD has moved")
	}
	testrig.PatientGit(t, clone, "checkout", "-q", "-b", "feature")
	if got := <-done; got.Commit != testrig.Git(t, clone, "rev-parse", "feature") || before != testrig.Git(t, clone, "rev-parse", "trunk") {
		t.Errorf("%+v", got)
	}
	r.clean()
}

// A lock that a killed process of ours has left is removed at the next start; that of another git is not ours to remove.
func TestLocksLeftBehind(t *testing.T) {
	t.Parallel()
	clone := newClone(t)
	lock := filepath.Join(clone, ".git", "index.lock")
	save(t, clone, ".git/index.lock", "fingerpost\n")
	r := start(t, clone, nil)
	r.mustWrite(key("ci", "r1"), "acme", "One")
	r.end()
	save(t, clone, ".git/index.lock", "")
	start(t, clone, nil)
	if _, err := os.Stat(lock); err != nil {
		t.Error(err)
	}
}

// Attributes of the repository, which everybody who may push to it can set, change no byte of a commit. Filters are refused, see
// TestFilterIsNotPassedBy.
func TestAttributesChangeNoBytes(t *testing.T) {
	t.Parallel()
	for name, attributes := range map[string]string{
		"encoding":    "*.hcl text working-tree-encoding=UTF-16\n",
		"no encoding": "*.hcl text working-tree-encoding=no-such\n",
		"line ends":   "*.hcl text eol=crlf\n",
		"keyword":     "*.hcl ident\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clone := newClone(t)
			was := strings.Replace(acme, "# The shop.", "# The shop.\r\n# $Id: 1 $", 1)
			save(t, clone, "projects.d/acme.hcl", was)
			testrig.Git(t, clone, "add", ".")
			testrig.Git(t, clone, "commit", "-q", "-m", "second")
			save(t, clone, ".gitattributes", attributes)
			testrig.Git(t, clone, "add", ".gitattributes")
			testrig.Git(t, clone, "commit", "-q", "-m", "attributes")
			r := start(t, clone, nil)
			r.mustWrite(key("ci", "r1"), "acme", "First")
			want := strings.Replace(was, `"Acme"`, `"First"`, 1)
			if got := testrig.Git(t, clone, "cat-file", "blob", "HEAD:projects.d/acme.hcl") + "\n"; got != want {
				t.Errorf("the commit has\n%q", got)
			}
			if got := read(t, filepath.Join(r.dir, "acme.hcl")); got != want {
				t.Errorf("the file has\n%q", got)
			}
		})
	}
}

// The service ends in the moment in which the branch has moved: people's index is brought up to date all the same.
func TestEndAmongACommit(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	clone := newClone(t)
	branch := filepath.Join(clone, ".git", "refs", "heads", "main")
	for i := range testrig.Size(t, 100, 10) {
		r := start(t, clone, func(o *gitrepo.Options) { o.Ack = gitrepo.AckFile })
		was := read(t, branch)
		r.mustWrite(key("ci", fmt.Sprint("r", i)), "acme", fmt.Sprint("Name ", i))
		testrig.Eventually(t, "the branch moves", func() bool { return read(t, branch) != was })
		r.end()
		if got := testrig.Git(t, clone, "status", "--porcelain"); got != "" {
			t.Fatalf("round %d: git status:\n%s", i, got)
		}
	}
}

// A content that git has packed is named again: its object has no file, and its folder may be gone.
func TestPackedContentComesBack(t *testing.T) {
	t.Parallel()
	clone := newClone(t)
	r := start(t, clone, nil)
	for i, name := range []string{"One", "Two", "Three"} {
		r.mustWrite(key("ci", fmt.Sprint("r", i)), "acme", name)
	}
	r.end()
	testrig.Git(t, clone, "gc", "-q", "--prune=now")
	r = start(t, clone, nil)
	if got := r.mustWrite(key("ci", "r4"), "acme", "One"); got.Commit == "" {
		t.Errorf("not committed: %+v", r.repo.Status())
	}
	r.clean()
}

// A git commit or git stash that has read the index before a commit of ours, and locks it after it, writes back what the
// index was before. It is brought up to date again; what the person has staged in it stays.
func TestStaleIndex(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone := newClone(t)
	r := start(t, clone, nil)
	index := filepath.Join(clone, ".git", "index")
	save(t, clone, "mine.txt", "mine\n")
	testrig.Git(t, clone, "add", "mine.txt")
	r.mustWrite(key("ci", "1"), "acme", "One")
	stale := read(t, index)
	r.mustWrite(key("ci", "2"), "acme", "Two")
	r.mustWrite(key("ci", "3"), "acme", "Three")
	r.mustWrite(key("ci", "4"), "other", "Four")
	putBack := func() {
		t.Helper()
		save(t, clone, ".git/index.lock", stale)
		if err := os.Rename(index+".lock", index); err != nil {
			t.Fatal(err)
		}
	}
	staged := func() string { return testrig.Git(t, clone, "diff", "--cached", "--name-only") }
	putBack()
	if got := staged(); got != "mine.txt\nprojects.d/acme.hcl\nprojects.d/teams/other.hcl" {
		t.Fatalf("the index is not stale: %s", got)
	}
	testrig.Eventually(t, "the index is right again", func() bool { return staged() == "mine.txt" })
	if got := testrig.Git(t, clone, "status", "--porcelain"); got != "A  mine.txt" {
		t.Errorf("git status: %s", got)
	}

	// On another branch the same entries are right.
	testrig.Git(t, clone, "branch", "before", "HEAD~3")
	r.mustWrite(key("ci", "5"), "acme", "Five")
	testrig.Git(t, clone, "checkout", "-q", "before")
	testrig.Git(t, clone, "reset", "-q", "--hard")
	testrig.Eventually(t, "the checkout is live", func() bool { return r.named("acme") == "One" })
	r.mustWrite(key("ci", "6"), "other", "Six")
	if got := staged(); got != "" {
		t.Errorf("staged on another branch: %s", got)
	}
}

// turned lets a person do something in the turn of a commit, before it takes git's lock.
type turned struct {
	*configsrc.Source
	first *func()
}

func (f turned) GitTurn(work func() error) error {
	return f.Source.GitTurn(func() error {
		if first := *f.first; first != nil {
			*f.first = nil
			first()
		}
		return work()
	})
}

// TestStagedSinceTheIndexWasReady: a commit makes the index ready before it takes git's lock. What a person stages in
// between stays, and so does the commit's change.
func TestStagedSinceTheIndexWasReady(t *testing.T) {
	t.Parallel()
	clone := newClone(t)
	var first func()
	r := startWith(t, clone, "projects.d", nil, nil, func(s *configsrc.Source) gitrepo.Files { return turned{s, &first} })
	status := func(want string) {
		t.Helper()
		if got := testrig.Git(t, clone, "status", "--porcelain"); got != want {
			t.Errorf("git status: %q, want %q", got, want)
		}
	}
	r.mustWrite(key("ci", "1"), "acme", "One")
	status("")
	save(t, clone, "mine.txt", "mine\n")
	asked := false
	first = func() { asked = true; testrig.Git(t, clone, "add", "mine.txt") }
	r.mustWrite(key("ci", "2"), "acme", "Two")
	status("A  mine.txt")
	first = func() { testrig.Git(t, clone, "rm", "-q", "--cached", "mine.txt") }
	r.mustWrite(key("ci", "3"), "other", "Three")
	status("?? mine.txt")
	if _, err := os.Lstat(filepath.Join(clone, ".git", "fingerpost-scratch", "index")); !asked || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a person was asked: %v; our copy of the index stays: %v", asked, err)
	}
}
