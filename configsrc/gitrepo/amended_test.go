package gitrepo_test

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// What the service changes in a file that a pull has brought is committed and pushed, and the trail names who brought it.
func TestAmendedFileIsCommitted(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	clone, person := withRemote(t)
	save(t, person, "projects.d/defaults.hcl", "defaults {\n  verification {\n    require = \"project-keys\"\n  }\n}\n")
	testrig.Git(t, person, "add", ".")
	testrig.Git(t, person, "commit", "-q", "-m", "proofs")
	testrig.Git(t, person, "push", "-q")
	testrig.Git(t, clone, "pull", "-q")
	var ahead atomic.Int64 // of the clock, in hours
	r := startAt(t, clone, "projects.d", func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Hour) }, syncing)
	pushed := func(message string) {
		t.Helper()
		testrig.Git(t, person, "add", ".")
		testrig.Git(t, person, "commit", "-q", "-m", message)
		testrig.Git(t, person, "push", "-q")
		r.repo.Sync()
	}
	project := func(slug, lines string) string {
		return "project \"" + slug + "\" {\n" + lines + "  name = \"New\"\n\n  domain \"" + slug + "-new.example\" {}\n}\n"
	}
	save(t, person, "projects.d/fresh.hcl", project("fresh", "  uuid = \"new\"\n"))
	testrig.Git(t, person, "rm", "-q", "projects.d/teams/other.hcl")
	pushed("a new one, and one that leaves")
	testrig.Eventually(t, "the removal is live", func() bool {
		_, err := r.resolver.ProjectBySlug("other")
		return catalog.IsNotFound(err) && r.named("fresh") == "New"
	})
	r.untilInStep()
	testrig.Git(t, person, "pull", "-q")
	if got := read(t, filepath.Join(person, "projects.d/fresh.hcl")); strings.Contains(got, `"new"`) || !strings.Contains(got, "uuid") {
		t.Errorf("the remote has\n%s", got)
	}
	ahead.Store(2)
	save(t, person, "projects.d/other.hcl", project("other", ""))
	pushed("another customer")
	testrig.Eventually(t, "the other one is live", func() bool { return r.named("other") == "New" })
	r.untilInStep()
	testrig.Git(t, person, "pull", "-q")
	if got := read(t, filepath.Join(person, "projects.d/other.hcl")); !strings.Contains(got, `{ verified = "pending" }`) {
		t.Errorf("the remote has\n%s", got)
	}
	page, err := r.resolver.Audit(catalog.AuditQuery{Action: "project.create", Limit: 2})
	if err != nil || len(page.Entries) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, e := range page.Entries {
		if e.Door != catalog.DoorGit || e.Actor == "" {
			t.Errorf("%s %s came by %q of %q", e.Action, e.Object, e.Door, e.Actor)
		}
	}
	r.clean()
}

// untilInStep waits until everything is committed, and the remote has it.
func (r *rig) untilInStep() {
	r.t.Helper()
	testrig.Eventually(r.t, "both sides are one", func() bool {
		r.repo.Sync()
		st := r.repo.Status()
		return st.Pending == 0 && st.Ahead == 0 && st.Behind == 0 && len(st.Errors()) == 0 &&
			testrig.Git(r.t, r.clone, "rev-parse", "HEAD") == testrig.Git(r.t, r.clone, "ls-remote", "origin", "main")[:40] &&
			testrig.Git(r.t, r.clone, "status", "--porcelain") == ""
	})
}
