package gitrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// objectFile returns the file of an object that a revision names.
func objectFile(t *testing.T, clone, revision string) string {
	t.Helper()
	id := testrig.Git(t, clone, "rev-parse", revision)
	return filepath.Join(clone, ".git/objects", id[:2], id[2:])
}

// An object of HEAD that is gone or was cut off by a power cut is made again with the next write: from the index or the
// work tree.
func TestMissingObjectsAreMadeAgain(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	spoil := map[string]func(file string) error{
		"gone":    os.Remove,
		"emptied": func(file string) error { return os.Truncate(file, 0) },
		"zeros": func(file string) error {
			if err := os.Chmod(file, 0o644); err != nil {
				return err
			}
			return os.WriteFile(file, make([]byte, 100), 0o644)
		},
	}
	for what, revision := range map[string]string{"top": "HEAD^{tree}", "folder": "HEAD:projects.d",
		"folder below": "HEAD:projects.d/teams", "file": "HEAD:projects.d/acme.hcl"} {
		for how, f := range spoil {
			if what != "folder" && how != "gone" && !testrig.Full() {
				continue // much like the others
			}
			t.Run(what+" "+how, func(t *testing.T) {
				t.Parallel()
				clone := newClone(t)
				r := start(t, clone, nil)
				r.mustWrite(key("ci", "r1"), "acme", "One")
				r.mustWrite(key("ci", "r2"), "other", "Two")
				r.end()
				if err := f(objectFile(t, clone, revision)); err != nil {
					t.Fatal(err)
				}
				r = start(t, clone, nil)
				if got := r.mustWrite(key("ci", "r3"), "acme", "Three"); got.Commit == "" {
					t.Errorf("not committed: %+v", r.repo.Status())
				}
				if got := testrig.Git(t, clone, "log", "--format=%s"); got != "acme: name\nother: name\nacme: name\nfirst" {
					t.Errorf("the history is\n%s", got)
				}
				r.clean()
			})
		}
	}
}

// What cannot be made again is told, with what to do: the commit itself, and a file that a person has edited since.
func TestLostObjectsAreTold(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for name, lose := range map[string]func(clone string) string{
		"commit": func(clone string) string { return objectFile(t, clone, "HEAD") },
		"file": func(clone string) string {
			save(t, clone, "projects.d/teams/other.hcl", strings.NewReplacer("acme", "other", "Acme", "Edited").Replace(acme))
			return objectFile(t, clone, "HEAD:projects.d/teams/other.hcl")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clone := newClone(t)
			if err := os.Remove(lose(clone)); err != nil {
				t.Fatal(err)
			}
			r := start(t, clone, func(o *gitrepo.Options) { o.Ack = gitrepo.AckFile })
			r.mustWrite(key("ci", "r1"), "other", "One")
			testrig.Eventually(t, "the status says so", func() bool {
				said := r.repo.Status().CommitError
				return strings.Contains(said, "git fetch --refetch") && strings.Contains(said, name)
			})
		})
	}
}

// An index that cannot be read, as git leaves one after a power cut, keeps no write from its commit. The status says what
// to do, and once a person has done it, it is people's index again.
func TestUnreadableIndex(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	clone := newClone(t)
	index := filepath.Join(clone, ".git", "index")
	if err := os.Truncate(index, 0); err != nil {
		t.Fatal(err)
	}
	r := start(t, clone, nil)
	if said := r.repo.Status().IndexError; !strings.Contains(said, `"rm `+index+`" and "git reset"`) {
		t.Errorf("the status says %q", said)
	}
	if got := r.mustWrite(key("ci", "r1"), "acme", "One"); got.Commit == "" {
		t.Errorf("not committed: %+v", r.repo.Status())
	}
	if err := os.Remove(index); err != nil {
		t.Fatal(err)
	}
	testrig.PatientGit(t, clone, "reset", "-q")
	testrig.Eventually(t, "the status is well again", func() bool { return r.repo.Status().IndexError == "" })
	r.mustWrite(key("ci", "r2"), "acme", "Two")
	r.clean()
}

// A pull that a power cut has ended is taken back before the files are read: a file that it has left empty declares what
// the branch has.
func TestPullCutOff(t *testing.T) {
	t.Parallel()
	clone, person := withRemote(t)
	edit(t, person, "projects.d/acme.hcl", `"Acme"`, `"Pulled"`, "one")
	edit(t, person, "projects.d/teams/other.hcl", `"Other"`, `"Pulled, too"`, "two")
	testrig.Git(t, person, "push", "-q")
	testrig.Git(t, clone, "fetch", "-q")
	testrig.Git(t, clone, "update-ref", "refs/fingerpost/moving", "origin/main")
	save(t, clone, "projects.d/acme.hcl", "")
	save(t, clone, "projects.d/teams/other.hcl", read(t, filepath.Join(person, "projects.d/teams/other.hcl")))
	r := start(t, clone, nil)
	if got := r.named("acme"); got != "Acme" {
		t.Errorf("acme is named %q", got)
	}
	if got := r.named("other"); got != "Other" {
		t.Errorf("other is named %q", got)
	}
	r.clean()
}
