package gitrepo_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// The variables of a process that TestKilled starts: the clone that it serves, and the prefix of its request ids.
const (
	childClone = "GITREPO_TEST_CLONE"
	childRound = "GITREPO_TEST_ROUND"
)

// TestChild is the service that TestKilled kills. It writes without end, and prints the ids of answered requests.
func TestChild(t *testing.T) {
	clone := os.Getenv(childClone)
	if clone == "" {
		t.Skip("runs in a process of TestKilled only")
	}
	round := os.Getenv(childRound)
	r := start(t, clone, func(o *gitrepo.Options) {
		o.Push, o.Pull, o.Ack = true, time.Hour, gitrepo.AckFile
	})
	fmt.Println("up")
	var clients sync.WaitGroup
	for n, slug := range []string{"acme", "other", "acme"} {
		clients.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%s-%d-%d", round, n, i)
				// Three of four keys make another commit; the names tell who comes when.
				if got := r.mustWrite(key(fmt.Sprint("key", n), id), slug, "name "+id); t.Failed() {
					t.Log(got)
					return
				}
				fmt.Println("ack", id)
			}
		})
	}
	clients.Wait()
}

// Kill -9 at any point of a write, commit, merge and push, while people commit, stage and stash in the same clone and
// push from another: every answered write is in the history exactly once, nothing of a person's is in a commit of ours,
// and the repository and the work tree are whole.
func TestKilled(t *testing.T) {
	testrig.Thorough(t)
	if os.Getenv(childClone) != "" {
		t.Skip("this is a child")
	}
	t.Parallel()
	kills := testrig.Size(t, 300, 2)
	clone, person := withRemote(t)
	save(t, clone, "mine.txt", "0\n")
	testrig.Git(t, clone, "add", "mine.txt")
	testrig.Git(t, clone, "commit", "-q", "-m", "mine")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	acked := map[string]bool{}
	for round := range kills {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^TestChild$")
		cmd.Env = append(os.Environ(), childClone+"="+clone, fmt.Sprintf("%s=r%d", childRound, round))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() || lines.Text() != "up" {
			said := lines.Text()
			for lines.Scan() {
				said += "\n" + lines.Text()
			}
			t.Fatalf("round %d: the service does not start: %s", round, said)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			for lines.Scan() {
				if id, ok := strings.CutPrefix(lines.Text(), "ack "); ok {
					acked[id] = true
				}
			}
		}()
		due := time.After(time.Duration(random.IntN(250)) * time.Millisecond)
		personAtWork(t, clone, person, round)
		<-due
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-read
		_ = cmd.Wait()
	}
	r := start(t, clone, syncing)
	st := r.repo.Status()
	defer func() {
		if t.Failed() {
			t.Logf("%+v\n%s", st, testrig.Git(t, clone, "status"))
		}
	}()
	// Services that live for an instant leave thousands of writes behind: it may take long, as long as it goes on.
	for n := r.repo.Status().Pending; n > 0; n = r.repo.Status().Pending {
		testrig.Eventually(t, "fewer writes wait", func() bool { return r.repo.Status().Pending < n })
	}
	testrig.Eventually(t, "all is committed and pushed", func() bool {
		st = r.repo.Status()
		return st.Pending == 0 && st.Upstream != "" && st.Ahead == 0 && st.Behind == 0
	})
	n := checkHistory(t, clone, acked)
	testrig.Figure(t, "%d kills, %d answered writes, %d in the history", kills, len(acked), n)
}

// personAtWork does what people do while the service writes.
func personAtWork(t *testing.T, clone, person string, round int) {
	save(t, clone, "mine.txt", fmt.Sprintln(round))
	switch round % 4 {
	case 0: // stages, and leaves it
		_, _ = testrig.TryGit(clone, "add", "mine.txt")
	case 1: // commits
		_, _ = testrig.TryGit(clone, "commit", "-q", "-m", "mine", "mine.txt")
	case 2: // pushes from elsewhere
		if _, err := testrig.TryGit(person, "pull", "-q", "--rebase"); err == nil {
			save(t, person, "theirs.txt", fmt.Sprintln(round))
			_, _ = testrig.TryGit(person, "add", "theirs.txt")
			_, _ = testrig.TryGit(person, "commit", "-q", "-m", "theirs")
			_, _ = testrig.TryGit(person, "push", "-q")
		}
	case 3: // stashes, and takes it back
		if _, err := testrig.TryGit(clone, "stash", "push", "-q", "mine.txt"); err == nil {
			_, _ = testrig.TryGit(clone, "stash", "pop", "-q")
		}
	}
}

// checkHistory fails unless each answered write is in the history exactly once, nothing of a person's is in a commit of
// the service, the work tree and the index have what HEAD has for the service's files, and git finds nothing broken. It
// returns the number of writes in the history.
func checkHistory(t *testing.T, clone string, acked map[string]bool) int {
	t.Helper()
	seen := map[string]int{}
	for id := range strings.FieldsSeq(testrig.Git(t, clone, "log", "--branches", "--format=%(trailers:key=Fingerpost-Request,valueonly)")) {
		seen[id]++
	}
	for id := range acked {
		if seen[id] != 1 {
			t.Errorf("the answered write %s is %d times in the history", id, seen[id])
		}
	}
	for id, n := range seen {
		if n > 1 {
			t.Errorf("the write %s is %d times in the history", id, n)
		}
	}
	for line := range strings.SplitSeq(testrig.Git(t, clone, "log", "--branches", "--committer=fingerpost", "--author=svc.example", "--format=", "--name-only"), "\n") {
		if line != "" && !strings.HasPrefix(line, "projects.d/") {
			t.Errorf("a commit of the service has %s", line)
		}
	}
	// A git of the person's may have written an old index back a moment ago.
	testrig.Eventually(t, "nothing of the service's is staged", func() bool { return testrig.Git(t, clone, "diff", "--cached", "--name-only", "--", "projects.d") == "" })
	if edited := testrig.Git(t, clone, "diff", "--name-only", "--", "projects.d"); edited != "" {
		t.Errorf("the work tree differs from HEAD in %s", edited)
	}
	if out, err := testrig.TryGit(clone, "fsck", "--strict", "--no-dangling"); err != nil {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
	return len(seen)
}
