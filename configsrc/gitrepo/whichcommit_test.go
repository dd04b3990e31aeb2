package gitrepo_test

import (
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// The audit trail names the commit that has a write's edit, or none: never one that somebody else made for another
// reason.
func TestWhichCommit(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	clone := newClone(t)
	r := start(t, clone, func(o *gitrepo.Options) { o.Ack = gitrepo.AckFile })
	committed := func() {
		t.Helper()
		testrig.Eventually(t, "all is committed", func() bool { return r.repo.Status().Pending == 0 })
	}

	// Here and gone before a commit was made.
	testrig.PatientGit(t, clone, "checkout", "-q", "--detach")
	p := &catalog.ProjectConfig{Project: catalog.Project{Name: "Brief", Slug: "brief", UUID: catalog.NewUUID(), Status: catalog.StatusDraft}}
	made := func(e *catalog.Edit) { // git may still be at work for the service
		t.Helper()
		testrig.Eventually(t, "the write is made", func() bool { _, err := r.source.Write(t.Context(), e); return err == nil })
	}
	made(&catalog.Edit{By: key("ci", "create").Author, NewProject: p})
	made(&catalog.Edit{By: key("ci", "delete").Author, Project: &catalog.ProjectEdit{UUID: p.Project.UUID, Remove: true}})
	if n := r.repo.Status().Pending; n != 2 {
		t.Fatalf("%d writes wait", n)
	}
	testrig.PatientGit(t, clone, "checkout", "-q", "main")
	committed()
	for _, request := range []string{"create", "delete"} {
		commit := r.audited(request)
		if commit == "" {
			t.Errorf("%s has no commit", request)
		} else if has := testrig.Git(t, clone, "log", "-1", "--format=%(trailers:key=Fingerpost-Request,valueonly)", commit); has != request {
			t.Errorf("%s has the commit %.12s, which is of %q", request, commit, has)
		}
	}

	// A person commits our edit with theirs.
	testrig.PatientGit(t, clone, "checkout", "-q", "--detach")
	r.mustWrite(key("ci", "theirs"), "acme", "Theirs")
	testrig.PatientGit(t, clone, "commit", "-qam", "theirs")
	theirs := testrig.Git(t, clone, "rev-parse", "HEAD")
	testrig.PatientGit(t, clone, "commit", "-q", "--allow-empty", "-m", "unrelated")
	testrig.PatientGit(t, clone, "checkout", "-q", "-B", "main")
	committed()
	if got := r.audited("theirs"); got != theirs {
		t.Errorf("the trail names %.12s, want %.12s", got, theirs)
	}

	// A person's edit, never committed, is taken back by a write.
	testrig.Eventually(t, "the last commit is some seconds old", func() bool {
		at, err := time.Parse(time.RFC3339, testrig.Git(t, clone, "log", "-1", "--format=%cI"))
		return err == nil && time.Since(at) > 2*time.Second
	})
	save(t, clone, "projects.d/acme.hcl", strings.Replace(read(t, r.dir+"/acme.hcl"), "Theirs", "Tried", 1))
	testrig.Eventually(t, "the edit is live", func() bool { return r.named("acme") == "Tried" })
	r.mustWrite(key("ci", "back"), "acme", "Theirs")
	committed()
	if got := r.audited("back"); got != "" {
		t.Errorf("the trail names %s", testrig.Git(t, clone, "log", "-1", "--oneline", got))
	}
	r.clean()
}
