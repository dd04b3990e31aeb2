package gitrepo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// many commits and pushes a number of files that is no change of the config folder.
func many(t *testing.T, person string, files int) (commit string) {
	t.Helper()
	var in strings.Builder
	in.WriteString("blob\nmark :1\ndata 1\nx\ncommit refs/heads/main\ncommitter Pat <pat@people.example> 1 +0000\n" +
		"data 4\nmany\nfrom refs/heads/main^0\n")
	for i := range files {
		fmt.Fprintf(&in, "M 100644 :1 many/%d/%d\n", i%100, i)
	}
	cmd := testrig.GitCommand(person, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v: %s", err, out)
	}
	testrig.Git(t, person, "push", "-q")
	return testrig.Git(t, person, "rev-parse", "main")
}

// A commit of the remote that changes more than a diff may have is a conflict that names it. Writes go on, and a smaller
// change is taken again.
func TestTooLargeAChange(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone, person := withRemote(t)
	r := start(t, clone, func(o *gitrepo.Options) { o.Pull = time.Hour })
	fits := many(t, person, 1000)
	r.repo.Sync()
	testrig.Eventually(t, "what fits is taken", func() bool { return r.repo.Status().Head == fits })
	large := many(t, person, 201_001) // 1,000 are there already
	for i := range 2 {
		r.repo.Sync()
		testrig.Eventually(t, "the status names the commit", func() bool {
			return strings.Contains(r.repo.Status().Conflict, large[:12]+" of refs/remotes/origin/main is not taken")
		})
		if got := r.mustWrite(key("ci", "r1"), "acme", fmt.Sprint("Name ", i)); got.Commit == "" {
			t.Errorf("not committed: %+v", r.repo.Status())
		}
	}
	testrig.Git(t, person, "reset", "-q", "--hard", fits)
	testrig.Git(t, person, "push", "-q", "-f")
	r.repo.Sync()
	testrig.Eventually(t, "the status is well again", func() bool { return r.repo.Status().Conflict == "" })
}

// A proposal that changes more is listed as one that cannot be applied, and says why.
func TestTooLargeAProposal(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone := newClone(t)
	r := start(t, clone, nil)
	testrig.Git(t, clone, "switch", "-q", "-c", "propose/large")
	for i := range 3 { // of 3 contents of 32 MiB, each is read twice at most
		save(t, clone, fmt.Sprintf("projects.d/body%d.txt", i), strings.Repeat("x", 32<<20)+fmt.Sprint(i))
	}
	testrig.Git(t, clone, "add", ".")
	testrig.Git(t, clone, "commit", "-q", "-m", "large")
	testrig.Git(t, clone, "switch", "-q", "main")
	var mergeable bool
	err := r.repo.Proposals(t.Context(), func(p *gitrepo.Proposal) error {
		mergeable = mergeable || p.Mergeable
		if len(p.Proposed.Files) > 0 || !p.Proposed.Outside {
			t.Errorf("%d files, outside %t", len(p.Proposed.Files), p.Proposed.Outside)
		}
		return nil
	})
	if err != nil || mergeable {
		t.Errorf("mergeable %t, %v", mergeable, err)
	}
	_, err = r.repo.ApplyProposal(t.Context(), "large", catalog.Author{}, "", func(*gitrepo.Proposal) error { return nil }, nil)
	if err == nil || !strings.Contains(err.Error(), "larger than 200000 files or 64 MiB") {
		t.Errorf("apply says %v", err)
	}
}
