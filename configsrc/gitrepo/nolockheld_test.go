package gitrepo_test

import (
	"context"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// No look at a proposal, and no list, holds up a commit, a pull, or another look: what the caller does with it is done
// without the lock that those need.
func TestLooksHoldNothingUp(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	clone, person := withRemote(t)
	r := start(t, clone, syncing)
	proposed(t, clone, "x", "main", "projects.d/teams/other.hcl", `"Other"`, `"Proposed"`)
	pass := func(*gitrepo.Proposal) error { return nil }
	name := "Acme"
	for what, look := range map[string]func(see func(*gitrepo.Proposal) error) error{
		"list": func(see func(*gitrepo.Proposal) error) error { return r.repo.Proposals(t.Context(), see) },
		"look": func(see func(*gitrepo.Proposal) error) error {
			return r.repo.Look(t.Context(), "x", pass, func(p *gitrepo.Proposal, _ []gitrepo.ProposalCommit, _ bool) error { return see(p) })
		},
		"tip": func(see func(*gitrepo.Proposal) error) error {
			_, err := r.repo.ProposalTip(t.Context(), "x", see)
			return err
		},
	} {
		inside, end, ended := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			ended <- look(func(*gitrepo.Proposal) error { close(inside); <-end; return nil })
		}()
		<-inside
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := r.repo.Look(ctx, "x", pass, func(p *gitrepo.Proposal, _ []gitrepo.ProposalCommit, _ bool) error {
			_, err := p.Merged.After("teams/other.hcl")
			return err
		}); err != nil {
			t.Errorf("%s: another look: %v", what, err)
		}
		cancel()
		edit(t, person, "projects.d/acme.hcl", `"`+name+`"`, `"Pulled for `+what+`"`, what)
		name = "Pulled for " + what
		testrig.Git(t, person, "push", "-q")
		r.repo.Sync()
		testrig.Eventually(t, "the pull is live", func() bool { return r.named("acme") == name })
		if got := r.mustWrite(key("ci", what), "acme", what); got.Commit == "" || !got.Pushed {
			t.Errorf("%s: %+v", what, got)
		}
		testrig.Git(t, person, "pull", "-q")
		name = what
		close(end)
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	r.clean()
}
