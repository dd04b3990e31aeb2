package gitrepo_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// Conflicts, one after the other, counted: the person's name wins each time, and the write is kept on its branch, here
// and at the remote. What each of them does elsewhere in the file stays.
func TestConflicts(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone, person := withRemote(t)
	r := start(t, clone, syncing)
	n := testrig.Size(t, 100, 2)
	acked := map[string]bool{}
	name := "Acme"
	for i := range n {
		id := fmt.Sprint("conflict-", i)
		theirs := fmt.Sprintf("Pat %d", i)
		edit(t, person, "projects.d/acme.hcl", fmt.Sprintf("%q", name), fmt.Sprintf("%q", theirs), id)
		name = theirs
		testrig.Git(t, person, "push", "-q")
		got := r.mustWrite(key("ci", id), "acme", fmt.Sprint("Ci ", i))
		if got.Overruled != "fingerpost/overruled/"+id || got.Pushed {
			t.Fatalf("write %d: %+v, %+v", i, got, r.repo.Status())
		}
		if file := testrig.Git(t, clone, "show", got.Overruled+":projects.d/acme.hcl"); !strings.Contains(file, fmt.Sprintf(`"Ci %d"`, i)) {
			t.Errorf("the branch of write %d has\n%s", i, file)
		}
		testrig.Eventually(t, "the person's name is live", func() bool { return r.named("acme") == theirs })
		acked[id] = true
	}
	testrig.Eventually(t, "all branches are pushed", func() bool {
		return strings.Count(testrig.Git(t, person, "ls-remote", "origin", "refs/heads/fingerpost/overruled/*"), "\n")+1 == n
	})
	if got := testrig.Git(t, clone, "log", "--format=%s", "--author=Pat", "main"); strings.Count(got, "conflict-") != n {
		t.Errorf("the branch has of the person's commits\n%s", got)
	}
	if found := checkHistory(t, clone, acked); found != n {
		t.Errorf("%d writes in the history, want %d", found, n)
	}
	testrig.Figure(t, "%d conflicts", n)
}

// Writes by several keys next to a person who edits, stages, stashes and commits in the same clone, also in the same
// files, and who pushes from another: every write is in the history once, and every commit of the person's is, unchanged.
func TestWritesNextToPerson(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone, person := withRemote(t)
	save(t, clone, "mine.txt", "0\n")
	testrig.Git(t, clone, "add", "mine.txt")
	testrig.Git(t, clone, "commit", "-q", "-m", "mine")
	base := testrig.Git(t, clone, "rev-parse", "HEAD")
	r := start(t, clone, func(o *gitrepo.Options) { o.Push, o.Pull, o.Ack = true, time.Second, gitrepo.AckFile })
	total := testrig.Size(t, 1000, 16)
	slugs := []string{"acme", "other"}
	var writing sync.WaitGroup
	var refused atomic.Int64
	due := make(chan struct{}, 1)
	for k := range 4 {
		writing.Go(func() {
			for i := k; i < total; i += 4 {
				id := fmt.Sprint("w", i)
				for {
					_, err := r.write(key(fmt.Sprint("key", k), id), slugs[i/4%2], func(p *catalog.ProjectConfig) { p.Project.Name = "name " + id })
					var e *catalog.Error
					if errors.As(err, &e) && e.Code == catalog.CodeFileChanged { // a refusal, which a client repeats
						refused.Add(1)
						continue
					}
					if err != nil {
						t.Errorf("%s: %v", id, err)
					}
					break
				}
				if i%10 == 0 {
					select {
					case due <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	go func() {
		writing.Wait()
		close(due)
	}()
	rounds := 0
	for range due {
		personAtWork(t, clone, person, rounds)
		rounds++
	}
	// A person's comment in a file of the service is not committed by it.
	path := filepath.Join("projects.d", "acme.hcl")
	save(t, clone, path, strings.Replace(read(t, filepath.Join(clone, path)), "# The shop.", "# The shop. Not committed.", 1))
	r.mustWrite(key("ci", "last"), "acme", "Last")
	testrig.Eventually(t, "all is committed", func() bool { return r.repo.Status().Pending == 0 })
	testrig.Eventually(t, "nothing of the service's is staged", func() bool { return testrig.Git(t, clone, "diff", "--cached", "--name-only", "--", "projects.d") == "" })
	if diff := testrig.Git(t, clone, "diff", "--", path); strings.Count(diff, "\n+") != 2 || !strings.Contains(diff, "+# The shop. Not committed.") { // one is +++
		t.Errorf("the person's edit is\n%s", diff)
	}
	testrig.PatientGit(t, clone, "checkout", "-q", "--", path)
	r.repo.Sync()
	testrig.Eventually(t, "all is pushed", func() bool { st := r.repo.Status(); return st.Ahead == 0 && st.Behind == 0 && st.SyncError == "" })
	acked := map[string]bool{"last": true}
	for i := range total {
		acked[fmt.Sprint("w", i)] = true
	}
	if found := checkHistory(t, clone, acked); found != len(acked) {
		t.Errorf("%d writes in the history, want %d", found, len(acked))
	}
	if got := testrig.Git(t, clone, "log", "--author=pat@people.example", "--format=%s", base+"..main", "--", "projects.d"); got != "" {
		t.Errorf("commits of the person's have files of the service:\n%s", got)
	}
	testrig.Figure(t, "%d writes in %d commits, %d rounds of the person, %d refused and repeated", total, r.repo.Status().Commits, rounds, refused.Load())
}
