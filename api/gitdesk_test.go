package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// A gitDesk is a desk whose folder is a git repository, and the person at it.
type gitDesk struct {
	*desk
	*client
	t       *testing.T
	outside string // holds origin and the second clone
	stop    chan struct{}

	world    sync.RWMutex // held for writing while the clients stand still
	standing bool         // they do; the person's alone
	refusal  string       // what git said last when it refused
	theirs   bool         // the side that is taken next in a conflict

	commands, failed, conflicts, settled, discarded int

	mu       sync.Mutex // guards what is below
	answered int
	acks     map[string]*ack
	statuses map[int]int
}

// gitProject is a project's file as people have it. The lines "as of" are theirs alone; the description and further
// domains are the API's.
const gitProject = `# %[1]s, as of %[2]s

project "%[1]s" {
  name = "%[1]s as of %[2]s"

  # What the clients write stands away from what people write, so that git can merge it.

  description = "none"

  # The domains.

  domain "%[1]s.example" { primary = true }
}

# The end.

# %[1]s, as of %[2]s, to its last line
`

// gitFiles are a branch's files. git writes those in mail before the others: it has checked all files by then, so this
// is the moment for a write that ignores git.
func gitFiles(version string) map[string]string {
	all := map[string]string{}
	for i := range 6 {
		slug := fmt.Sprintf("p%d", i)
		all[slug+".hcl"] = fmt.Sprintf(gitProject, slug, version)
	}
	for i := range 200 {
		all[fmt.Sprintf("mail/%03d.txt", i)] = "as of " + version + "\n"
	}
	return all
}

func newGitDesk(t *testing.T) *gitDesk {
	g := &gitDesk{t: t, outside: t.TempDir(), stop: make(chan struct{}), acks: map[string]*ack{}, statuses: map[int]int{}}
	g.desk = newDesk(t, gitFiles("main-0"))
	g.client = newClient(t, g.desk)
	g.must("init", "-q", "-b", "main")
	exclude := filepath.Join(g.dir, ".git", "info", "exclude")
	if err := os.WriteFile(exclude, []byte(storyKeyFile+"\n.fingerpost-*.tmp\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	g.commit()
	g.must("checkout", "-q", "-b", "side")
	g.save(t, gitFiles("side-0"))
	g.commit()
	g.must("checkout", "-q", "main")
	g.must("init", "-q", "--bare", "-b", "main", filepath.Join(g.outside, "origin"))
	g.must("remote", "add", "origin", filepath.Join(g.outside, "origin"))
	g.must("push", "-q", "-u", "origin", "main")
	g.must("clone", "-q", filepath.Join(g.outside, "origin"), filepath.Join(g.outside, "clone"))
	g.look(time.Now(), "start", false, true)
	return g
}

// git runs a command in a folder.
func (g *gitDesk) git(dir, in string, args ...string) (string, error) {
	cmd := testrig.GitCommand(dir, append([]string{"-c", "gc.auto=0", "-c", "core.fsync=none", "-c", "advice.detachedHead=false"}, args...)...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (g *gitDesk) must(args ...string) string {
	g.t.Helper()
	out, err := g.git(g.dir, "", args...)
	if err != nil {
		g.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

// step runs a command that changes the tree, and checks the tree afterwards. It reports whether git succeeded.
func (g *gitDesk) step(args ...string) bool {
	g.t.Helper()
	start := time.Now()
	out, err := g.git(g.dir, "", args...)
	if g.commands++; err != nil {
		g.failed++
	}
	if err != nil {
		g.refusal = out
	}
	g.look(start, fmt.Sprintf("git %v: %v\n%s", args, err, out), args[0] != "checkout", err == nil)
	return err == nil
}

// still runs do while no client writes.
func (g *gitDesk) still(do func()) {
	if g.standing {
		do()
		return
	}
	g.world.Lock()
	g.standing = true
	defer func() {
		g.standing = false
		g.world.Unlock()
	}()
	do()
}

// somethingNew waits for a few writes.
func (g *gitDesk) somethingNew() {
	g.t.Helper()
	count := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.answered
	}
	before := count()
	testrig.Eventually(g.t, "a write", func() bool { return count() > before+3 })
}

// commit commits the tree; git add may fail because a client has just exchanged a file.
func (g *gitDesk) commit() {
	g.t.Helper()
	testrig.Eventually(g.t, "git add", func() bool { _, err := g.git(g.dir, "", "add", "-A"); return err == nil })
	g.must("commit", "-q", "--allow-empty", "-m", "what is there")
}

// untilDone runs a command that git refuses while local changes are in its way. It stashes them; after a few tries it
// waits for a quiet moment.
func (g *gitDesk) untilDone(args ...string) {
	g.t.Helper()
	try := func() bool {
		if g.step(args...) {
			return true
		}
		if g.settle() { // a merge: the commit ends it
			g.commit()
			return true
		}
		return false
	}
	for range 3 {
		if try() {
			g.pop()
			return
		}
		g.step("stash", "-q")
	}
	g.still(func() {
		g.step("stash", "-q")
		if !try() {
			g.t.Fatalf("git %v fails, and nothing is in its way: %s", args, g.refusal)
		}
	})
	g.pop()
}

// pop restores all stashes.
func (g *gitDesk) pop() {
	g.t.Helper()
	once := func() {
		g.commit()
		if g.step("stash", "pop", "-q") {
			return
		}
		if g.settle() {
			g.must("stash", "drop", "-q")
			g.commit()
		}
	}
	for n := 0; g.must("stash", "list") != ""; n++ {
		switch {
		case n < 3:
			once()
		case n < 50:
			g.still(once)
		default:
			g.t.Fatal("git stash pop fails again and again")
		}
	}
}

// settle takes either side of each conflict, and reports whether there was any.
func (g *gitDesk) settle() bool {
	g.t.Helper()
	_, list := g.index()
	if len(list) == 0 {
		return false
	}
	g.conflicts += len(list)
	side := "--ours"
	if g.theirs = !g.theirs; g.theirs {
		side = "--theirs"
	}
	g.still(func() { // everything except the marks will be removed, so no client may add to it
		start := time.Now()
		g.must(append([]string{"checkout", "-q", side, "--"}, list...)...)
		g.must(append([]string{"add", "--"}, list...)...)
		g.look(start, "git checkout "+side, false, true)
	})
	return true
}

// pull merges what another person has pushed.
func (g *gitDesk) pull(round int) {
	g.t.Helper()
	there := filepath.Join(g.outside, "clone")
	other := func(args ...string) {
		g.t.Helper()
		if out, err := g.git(there, "", args...); err != nil {
			g.t.Fatalf("in the clone, git %v: %v\n%s", args, err, out)
		}
	}
	other("pull", "-q")
	for _, i := range []int{round % 4, (round + 2) % 4, 4} {
		name := filepath.Join(there, fmt.Sprintf("p%d.hcl", i))
		b, err := os.ReadFile(name)
		if err != nil {
			g.t.Fatal(err)
		}
		b = asOf.ReplaceAll(b, fmt.Appendf(nil, "as of clone-%d", round))
		if err := os.WriteFile(name, b, 0o644); err != nil {
			g.t.Fatal(err)
		}
	}
	other("commit", "-qam", "from the clone")
	other("push", "-q")
	g.somethingNew()
	g.commit()
	g.untilDone("pull", "-q", "--no-rebase", "--no-edit")
	g.must("push", "-q")
}

// names are the files of the folder.
func (g *gitDesk) names(pattern string) (names []string) {
	list, err := filepath.Glob(filepath.Join(g.dir, pattern))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, name := range list {
		if name = filepath.Base(name); name != storyKeyFile {
			names = append(names, name)
		}
	}
	return names
}

// index returns git's index of the project files, with the conflicts separately.
func (g *gitDesk) index() (content map[string]string, conflicts []string) {
	g.t.Helper()
	content = map[string]string{}
	var names []string
	var ids string
	for line := range strings.Lines(g.must("ls-files", "--stage", "p*.hcl")) {
		f := strings.Fields(line) // mode, id, stage, name
		switch {
		case f[2] == "0":
			names = append(names, f[3])
			ids += f[1] + "\n"
		case !slices.Contains(conflicts, f[3]):
			conflicts = append(conflicts, f[3])
		}
	}
	out, err := g.git(g.dir, ids, "cat-file", "--batch")
	if err != nil {
		g.t.Fatalf("git cat-file: %v\n%s", err, out)
	}
	for _, name := range names {
		var id, kind string
		var size int
		head, rest, _ := strings.Cut(out, "\n")
		if _, err := fmt.Sscan(head, &id, &kind, &size); err != nil || size >= len(rest) {
			g.t.Fatalf("git cat-file says %q, %v", head, err)
		}
		content[name], out = rest[:size], rest[size+1:]
	}
	return content, conflicts
}
