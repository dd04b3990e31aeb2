package gitrepo_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// tracedClone names the clone for the process that TestEverythingIsSynced traces.
const tracedClone = "GITREPO_TEST_TRACED"

// TestTracedChild is the service that TestEverythingIsSynced traces.
func TestTracedChild(t *testing.T) {
	clone := os.Getenv(tracedClone)
	if clone == "" {
		t.Skip("runs in a process of TestEverythingIsSynced only")
	}
	if testrig.Git(t, clone, "remote") != "" { // for TestPeoplesIndexIsSynced
		r := start(t, clone, syncing)
		testrig.Eventually(t, "the pull is live", func() bool { return r.named("acme") == "Pulled" })
		r.apply("x", "apply")
		r.mustWrite(key("ci", "r1"), "acme", "One")
		if _, err := gitrepo.Check(t.Context(), gitrepo.Options{Dir: r.dir, Push: true}); err != nil {
			t.Fatal(err)
		}
		return
	}
	r := start(t, clone, nil)
	r.mustWrite(key("ci", "r1"), "acme", "One")
	r.mustWrite(key("ci", "r2"), "other", "Two")
	p := &catalog.Project{Name: "New", Slug: "new", Status: catalog.StatusDraft, UUID: catalog.NewUUID()}
	if _, err := r.source.Write(t.Context(), &catalog.Edit{By: key("ci", "r3").Author, NewProject: &catalog.ProjectConfig{Project: *p}}); err != nil {
		t.Fatal(err)
	}
	testrig.Eventually(t, "all is committed", func() bool { return r.repo.Status().Commits == 3 })
}

// A call is a system call that has succeeded, with the paths that it names.
type call struct {
	name  string
	paths []string
}

var (
	tracedLine = regexp.MustCompile(`^(\d+) +(.*)$`)
	tracedPath = regexp.MustCompile(`"([^"]*)"|<([^<>]*)>`)
	tracedHere = regexp.MustCompile(`AT_FDCWD<[^<>]*>`)
	tracedCall = regexp.MustCompile(`^(\w+)\((.*)\) += 0$`)
)

// traced runs this test binary's child under strace, and returns its calls, in order.
func traced(t *testing.T, clone string) (calls []call) {
	t.Helper()
	testrig.Need(t, "strace")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "strace.log")
	cmd := exec.Command("strace", "-f", "-y", "-qq", "-s", "4096", "--seccomp-bpf", "-o", log,
		"-e", "trace=fsync,fdatasync,rename,renameat,renameat2,link,linkat",
		self, "-test.run=^TestTracedChild$")
	cmd.Env = append(os.Environ(), tracedClone+"="+clone)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	begun := map[string]string{}
	for line := range strings.SplitSeq(read(t, log), "\n") {
		m := tracedLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		pid, text := m[1], m[2]
		if head, cut := strings.CutSuffix(text, " <unfinished ...>"); cut {
			begun[pid] = head
			continue
		}
		if _, tail, resumed := strings.Cut(text, " resumed>"); resumed {
			text = begun[pid] + tail
		}
		c := tracedCall.FindStringSubmatch(strings.TrimSpace(text))
		if c == nil {
			continue // it has failed
		}
		one := call{name: c[1]}
		for _, p := range tracedPath.FindAllStringSubmatch(tracedHere.ReplaceAllString(c[2], ""), -1) {
			if path := p[1] + p[2]; strings.HasPrefix(path, "/") {
				one.paths = append(one.paths, path)
			} else if path != "" { // relative to the work tree, or to a folder whose path comes before it
				base := clone
				if n := len(one.paths); n > 0 && strings.HasSuffix(one.name, "at") {
					base = one.paths[n-1]
				}
				one.paths = append(one.paths, filepath.Join(base, path))
			}
		}
		calls = append(calls, one)
	}
	return calls
}

func isSync(c call, path string) bool {
	return strings.HasPrefix(c.name, "f") && len(c.paths) == 1 && c.paths[0] == path
}

// named returns the index of the call that gave a file its name, after the call at from, and the name before; -1 for none.
func named(calls []call, path string, from int) (at int, before string) {
	for i, c := range calls[from:] {
		if !strings.HasPrefix(c.name, "f") && len(c.paths) >= 2 && c.paths[len(c.paths)-1] == path {
			for _, p := range slices.Backward(c.paths[:len(c.paths)-1]) {
				if p != path && p != filepath.Dir(path) {
					return from + i, p
				}
			}
		}
	}
	return -1, ""
}

// Every object, ref and index that the service makes is on the disk before anything names it: one sync of each new
// object's file, before it has its name, and one of its folder, before the branch moves.
func TestEverythingIsSynced(t *testing.T) {
	t.Parallel()
	testrig.Slow(t)
	clone := newClone(t)
	before := objectFiles(t, clone)
	calls := traced(t, clone)
	git := filepath.Join(clone, ".git")
	branch := filepath.Join(git, "refs/heads/main")
	var moves []int // of the branch
	for from := 0; ; {
		at, lock := named(calls, branch, from)
		if at < 0 {
			break
		}
		if !slices.ContainsFunc(calls[from:at], func(c call) bool { return isSync(c, lock) }) {
			t.Errorf("the branch's new value was not synced before call %d", at)
		}
		if !slices.ContainsFunc(calls[at:], func(c call) bool { return isSync(c, filepath.Dir(branch)) }) {
			t.Errorf("the branch's folder was not synced after call %d", at)
		}
		moves, from = append(moves, at), at+1
	}
	if len(moves) != 3 {
		t.Errorf("the branch has moved %d times, want 3", len(moves))
	}
	fresh := 0
	for object := range objectFiles(t, clone) {
		if before[object] {
			continue
		}
		fresh++
		at, temp := named(calls, object, 0)
		if at < 0 {
			t.Errorf("no call has named %s", object)
			continue
		}
		own := 0
		for i, c := range calls {
			if isSync(c, temp) && i < at || isSync(c, object) {
				own++
			}
		}
		if own != 1 {
			t.Errorf("%s was synced %d times, want once", object, own)
		}
		next := slices.IndexFunc(moves, func(move int) bool { return move > at })
		if next < 0 || !slices.ContainsFunc(calls[at:moves[next]], func(c call) bool { return isSync(c, filepath.Dir(object)) }) {
			t.Errorf("the folder of %s was not synced before the branch has moved", object)
		}
	}
	if fresh < 10 { // 3 commits, a blob and a tree or two each
		t.Errorf("%d new objects", fresh)
	}
	if n := syncedIndexes(t, git, calls); n != 3 {
		t.Errorf("the index was replaced %d times, want 3", n)
	}
	t.Logf("%d objects, %d calls", fresh, len(calls))
}

// syncedIndexes counts how often people's index was replaced, and fails unless it was synced before, and its folder
// afterwards.
func syncedIndexes(t *testing.T, git string, calls []call) (n int) {
	t.Helper()
	for from := 0; ; n++ {
		at, temp := named(calls, filepath.Join(git, "index"), from)
		if at < 0 {
			return n
		}
		if !slices.ContainsFunc(calls[from:at], func(c call) bool { return isSync(c, temp) }) {
			t.Errorf("the index of call %d was not synced", at)
		}
		if !slices.ContainsFunc(calls[at:], func(c call) bool { return isSync(c, git) }) {
			t.Errorf("the index's folder was not synced after call %d", at)
		}
		from = at + 1
	}
}

// People's index is replaced by a pull, by applying a proposal and by a commit, and is synced each time: no git of the
// service writes it by itself.
func TestPeoplesIndexIsSynced(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	clone, person := withRemote(t)
	proposed(t, clone, "x", "main", "projects.d/teams/other.hcl", `"Other"`, `"Proposed"`)
	edit(t, person, "projects.d/acme.hcl", `"Acme"`, `"Pulled"`, "rename")
	testrig.Git(t, person, "push", "-q")
	// The times of this file in the index are not those on the disk: a git that may would write them.
	save(t, clone, "README", "about\n")
	calls := traced(t, clone)
	if n := syncedIndexes(t, filepath.Join(clone, ".git"), calls); n < 3 {
		t.Errorf("the index was replaced %d times", n)
	}
}

// objectFiles lists the files of objects.
func objectFiles(t *testing.T, clone string) map[string]bool {
	t.Helper()
	files := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(clone, ".git/objects"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && len(filepath.Base(filepath.Dir(path))) == 2 {
			files[path] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
