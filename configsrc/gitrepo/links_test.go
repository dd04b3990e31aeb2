package gitrepo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// replacements are what a commit of somebody else puts in the place of a path in the clone deep/er/projects.d.
var replacements = map[string]func(t *testing.T, at string){
	"link out of the clone": func(t *testing.T, at string) { link(t, "/etc", at) },
	"link into the clone":   func(t *testing.T, at string) { link(t, strings.Repeat("../", 2)+".git", at) },
	"file":                  func(t *testing.T, at string) { save(t, filepath.Dir(at), filepath.Base(at), "text\n") },
	"submodule": func(t *testing.T, at string) {
		testrig.Git(t, filepath.Dir(at), "init", "-q", at)
		testrig.Git(t, at, "commit", "-q", "--allow-empty", "-m", "inside")
	},
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// spoiled is a clone and a person's, whose config folder is deep/er/projects.d. The person has a commit, not pushed, in
// which something else is in the place of path.
func spoiled(t *testing.T, path, with string) (clone, person string) {
	t.Helper()
	clone, person = withRemote(t)
	for _, dir := range []string{"deep", "deep/er"} {
		if err := os.Mkdir(filepath.Join(person, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	testrig.Git(t, person, "mv", "projects.d", "deep/er/projects.d")
	testrig.Git(t, person, "commit", "-q", "-a", "-m", "deeper")
	testrig.Git(t, person, "push", "-q")
	testrig.Git(t, clone, "pull", "-q")
	at := filepath.Join(person, path)
	testrig.Git(t, person, "rm", "-q", "-r", path)
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		t.Fatal(err)
	}
	replacements[with](t, at)
	testrig.Git(t, person, "add", "-A")
	testrig.Git(t, person, "commit", "-q", "-m", "spoil "+path)
	return clone, person
}

// A commit of somebody else's by which the config folder, one above it or a folder below it becomes a link or a submodule
// is refused, whichever way it comes. Nothing changes then, and the status says what to do.
func TestLinksAreRefused(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Slow(t)
	places := []string{"deep", "deep/er", "deep/er/projects.d", "deep/er/projects.d/teams", "deep/er/projects.d/acme.hcl"}
	for _, path := range places {
		for with := range replacements {
			if with == "file" && strings.Contains(path, "projects.d/") {
				continue // that is allowed
			}
			usual := map[string]string{"deep": "link out of the clone", "deep/er": "submodule",
				"deep/er/projects.d": "link into the clone", "deep/er/projects.d/teams": "link out of the clone"}
			if usual[path] != with && !testrig.Full() {
				continue // much like the others
			}
			t.Run(strings.ReplaceAll(path, "/", "-")+" "+with, func(t *testing.T) {
				t.Parallel()
				clone, person := spoiled(t, path, with)
				r := startIn(t, clone, "deep/er/projects.d", func(o *gitrepo.Options) { o.Push, o.Pull, o.Ack = true, 1<<40, gitrepo.AckCommit })
				refusedProposal(t, r, person, path)
				head := testrig.Git(t, clone, "rev-parse", "HEAD")
				testrig.Git(t, person, "push", "-q")
				r.repo.Sync()
				testrig.Eventually(t, "the pull is refused", func() bool { return strings.Contains(r.repo.Status().Conflict, path) })
				if now := testrig.Git(t, clone, "rev-parse", "HEAD"); now != head {
					t.Errorf("HEAD has moved to %s", now)
				}
				r.mustWrite(key("ci", "r1"), "acme", "One") // both sides have commits now
				r.repo.Sync()
				testrig.Eventually(t, "the merge is refused", func() bool {
					st := r.repo.Status()
					return strings.Contains(st.Conflict, path) && st.Ahead == 1
				})
				if branches := testrig.Git(t, clone, "branch", "--list", "fingerpost/*"); branches != "" {
					t.Errorf("made the branches %s", branches)
				}
				if info, err := os.Lstat(filepath.Join(clone, path)); err != nil || info.Mode()&os.ModeSymlink != 0 {
					t.Errorf("%v, %v", info, err)
				}
				if r.named("acme") != "One" {
					t.Errorf("acme is named %s", r.named("acme"))
				}
			})
		}
	}
}

// refusedProposal makes the person's last commit a proposal: it is listed, and cannot be applied.
func refusedProposal(t *testing.T, r *rig, person, path string) {
	t.Helper()
	testrig.Git(t, r.clone, "fetch", "-q", person, "main:propose/trap")
	var list []*gitrepo.Proposal
	err := r.repo.Proposals(t.Context(), func(p *gitrepo.Proposal) error {
		list = append(list, p)
		return nil
	})
	if err != nil || len(list) != 1 || list[0].Mergeable {
		t.Fatalf("the list is %v, %v", list, err)
	}
	_, err = r.repo.ApplyProposal(t.Context(), "trap", catalog.Author{Key: "ci"}, "", func(*gitrepo.Proposal) error { return nil },
		func(_ *gitrepo.Proposal, move func() error) error { return move() })
	if e := (*catalog.Error)(nil); !errors.As(err, &e) || e.Code != catalog.CodeConflict || !strings.Contains(e.Message, path) {
		t.Errorf("applied with %v", err)
	}
	testrig.Git(t, r.clone, "branch", "-q", "-D", "propose/trap")
}
