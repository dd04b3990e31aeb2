package gitrepo_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// What a proposal changes is told from where its branch left HEAD's, however both have gone on: what is known from the
// last look is what git says now.
func TestWhereAProposalLeft(t *testing.T) {
	testrig.Thorough(t)
	clone := newClone(t)
	r := start(t, clone, nil)
	other := clone + ".other"
	git := func(args ...string) string { return testrig.Git(t, clone, args...) }
	git("worktree", "add", "-q", "-b", "propose/x", other)
	const branch = "refs/heads/propose/x"
	random := rand.New(rand.NewPCG(1, 2))
	n := 0
	grow := func(dir string) {
		n++
		save(t, dir, fmt.Sprintf("projects.d/p%d.hcl", n), fmt.Sprintf("project \"p%d\" {\n  name = \"P\"\n}\n", n))
		testrig.Git(t, dir, "add", "-A")
		testrig.Git(t, dir, "commit", "-qm", "more")
	}
	steps := map[string]func(){
		"a commit of a person":    func() { grow(clone) },
		"a write to the proposal": func() { grow(other) },
		"the proposal is merged":  func() { git("merge", "-q", "--no-edit", "propose/x") },
		"HEAD is merged into it":  func() { testrig.Git(t, other, "merge", "-q", "--no-edit", "main") },
		"HEAD goes on to one of the proposal": func() {
			_, _ = testrig.TryGit(clone, "merge", "-q", "--ff-only", branch+"~") // where it can
		},
		"two of a person": func() {
			git("commit", "-q", "--allow-empty", "-m", "empty")
			git("commit", "-q", "--allow-empty", "-m", "empty")
		},
	}
	names := slices.Sorted(maps.Keys(steps))
	kept := 0
	for i := range testrig.Size(t, 200, 30) {
		step := names[random.IntN(len(names))]
		before := git("merge-base", "HEAD", branch)
		steps[step]()
		base := git("merge-base", "HEAD", branch)
		if base == before && git("rev-parse", "HEAD") != base {
			kept++
		}
		var want []string
		for _, name := range strings.Fields(git("diff-tree", "-r", "--name-only", base, branch)) {
			want = append(want, strings.TrimPrefix(name, "projects.d/"))
		}
		var got []string
		err := r.repo.Proposals(t.Context(), func(p *gitrepo.Proposal) error {
			for _, f := range p.Proposed.Files {
				got = append(got, f.Path)
			}
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("after step %d, %s: the proposal changes %q, git says %q; %v", i, step, got, want, err)
		}
	}
	t.Logf("campaign: the base stayed in %d steps", kept)
}
