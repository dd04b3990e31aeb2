package gitrepo_test

import (
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// proposed makes the branch of a proposal at a commit of the clone, with an edit of a person.
func proposed(t *testing.T, clone, name, at, file, old, new string) (other string) {
	t.Helper()
	other = filepath.Join(t.TempDir(), name)
	testrig.Git(t, clone, "worktree", "add", "-q", "-b", "propose/"+name, other, at)
	edit(t, other, file, old, new, "propose "+name)
	return other
}

// apply applies a proposal as the API does.
func (r *rig) apply(name, request string) {
	r.t.Helper()
	_, err := r.repo.ApplyProposal(r.t.Context(), name, key("ci", request).Author, "",
		func(*gitrepo.Proposal) error { return nil },
		func(_ *gitrepo.Proposal, move func() error) error {
			return r.source.PatientGitTurn(r.t.Context(), move)
		})
	if err != nil {
		r.t.Fatal(err)
	}
}

// A proposal that is applied while the remote is ahead is brought onto the remote's tree as any write is, whatever kind
// of commit applying it has made.
func TestAppliedWhileTheRemoteIsAhead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, r *rig) // makes the proposal x of the name "Proposed" of other
		parents int                        // of the commit that main has in the end
		author  string                     // of that commit
	}{
		{"merge", func(t *testing.T, r *rig) {
			proposed(t, r.clone, "x", "main", "projects.d/teams/other.hcl", `"Other"`, `"Proposed"`)
			r.mustWrite(key("ci", "w"), "acme", "Written")
		}, 2, "ci"},
		{"after a write that the remote lacks", func(t *testing.T, r *rig) {
			r.mustWrite(key("ci", "w"), "acme", "Written")
			proposed(t, r.clone, "x", "main", "projects.d/teams/other.hcl", `"Other"`, `"Proposed"`)
			r.mustWrite(key("ci", "w2"), "acme", "Written again")
		}, 1, "Pat"},
		{"fast-forward", func(t *testing.T, r *rig) {
			proposed(t, r.clone, "x", "main", "projects.d/teams/other.hcl", `"Other"`, `"Proposed"`)
		}, 1, "Pat"},
		{"a person has merged main into it", func(t *testing.T, r *rig) {
			other := proposed(t, r.clone, "x", "main", "projects.d/teams/other.hcl", `"Other"`, `"Proposed"`)
			r.mustWrite(key("ci", "w"), "acme", "Written")
			testrig.Git(t, other, "merge", "-q", "--no-edit", "main")
		}, 1, "Pat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "merge" {
				testrig.Thorough(t)
			}
			t.Parallel()
			clone, person := withRemote(t)
			r := start(t, clone, func(o *gitrepo.Options) { syncing(o); o.Ack = gitrepo.AckCommit; o.Push = false })
			c.prepare(t, r)
			edit(t, person, "README", "about", "of Pat", "pushed meanwhile")
			testrig.Git(t, person, "push", "-q")
			r.apply("x", "apply")
			r.end()
			r = start(t, clone, syncing)
			testrig.Eventually(t, "both sides are one", func() bool {
				st := r.repo.Status()
				if st.Conflict != "" {
					t.Fatal(st.Conflict)
				}
				return st.Upstream != "" && st.Ahead == 0 && st.Behind == 0 && st.SyncError == ""
			})
			testrig.Git(t, person, "pull", "-q")
			if got := read(t, filepath.Join(person, "projects.d/teams/other.hcl")); !strings.Contains(got, `"Proposed"`) {
				t.Errorf("the remote has\n%s", got)
			}
			if got := r.named("other"); got != "Proposed" {
				t.Errorf("live is %q", got)
			}
			got := testrig.Git(t, person, "log", "-1", "--format=%P|%an|%B")
			parents, rest, _ := strings.Cut(got, "|")
			author, _, _ := strings.Cut(rest, "|")
			if n := len(strings.Fields(parents)); n != c.parents || author != c.author {
				t.Errorf("%d parents, author %s:\n%s", n, author, testrig.Git(t, person, "log", "--graph", "--format=%h %an %s"))
			}
			ids := strings.Fields(testrig.Git(t, person, "log", "--format=%(trailers:key=Fingerpost-Request,valueonly)"))
			seen := map[string]int{}
			for _, id := range ids {
				if seen[id]++; seen[id] > 1 {
					t.Errorf("the write %s is twice in the history", id)
				}
			}
			r.clean()
		})
	}
}
