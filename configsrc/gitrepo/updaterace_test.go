package gitrepo_test

import (
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// A pull that rebases HEAD while a proposal is brought up to date with it: the commit that HEAD has lost does not become
// part of the proposal.
func TestUpdateWhileHeadIsRebased(t *testing.T) {
	t.Parallel()
	clone, person := withRemote(t)
	r := start(t, clone, func(o *gitrepo.Options) { syncing(o); o.Ack = gitrepo.AckCommit; o.Push = false })
	proposed(t, clone, "x", "main", "projects.d/teams/other.hcl", `"Other"`, `"Proposed"`)
	r.mustWrite(key("ci", "w"), "acme", "Written")
	r.mustWrite(key("ci", "w2"), "other", "Written, too")
	lost := testrig.Git(t, clone, "rev-parse", "main")
	edit(t, person, "README", "about", "of Pat", "pushed meanwhile")
	testrig.Git(t, person, "push", "-q")
	all := func(*gitrepo.Proposal) error { return nil }
	moved := false
	p, err := r.repo.UpdateProposal(t.Context(), "x", gitrepo.ProposalKey{ID: "ci", Name: "ci"}, catalog.Author{Key: "ci"},
		func(*gitrepo.Proposal) error {
			if !moved {
				moved = true
				r.repo.Sync()
				testrig.Eventually(t, "HEAD is rebased", func() bool {
					_, err := testrig.TryGit(clone, "merge-base", "--is-ancestor", lost, "main")
					return err != nil
				})
			}
			return nil
		})
	if err != nil { // it may be asked again
		p, err = r.repo.UpdateProposal(t.Context(), "x", gitrepo.ProposalKey{ID: "ci", Name: "ci"}, catalog.Author{Key: "ci"}, all)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Proposed.Files {
		if f.Path != "teams/other.hcl" {
			t.Errorf("the proposal changes %s", f.Path)
		}
	}
	r.apply("x", "apply")
	if _, err := testrig.TryGit(clone, "merge-base", "--is-ancestor", lost, "main"); err == nil {
		t.Errorf("a commit that was rebased is in the branch again:\n%s", testrig.Git(t, clone, "log", "--graph", "--oneline", "main"))
	}
}
