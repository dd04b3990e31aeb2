package api_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hclfile"
)

// TestGitWins runs git in the config folder as a person does while clients write all the time: checkout back and forth,
// stash and pop, pull with commits from a second clone; conflicts are settled by taking either side. After each command
// the clients stop, and the test checks:
//
//   - Nothing that git has written is lost or torn: in each file people's lines, including the first and the last, are
//     those in git's index.
//   - Exactly the files with git's conflict marks are quarantined, and all projects are still served. Without
//     conflicts the server answers like a new one on the same files.
//   - Every write that was acknowledged is in the tree or next to it, or git has it in a commit or stash, including
//     dropped ones.
//
// The last check has an exception. git stash, its pop and a merge read the files, release the lock, and write later, so
// they overwrite saves in between. If that takes them longer than the API waits, as on an overloaded machine, a write
// that was answered in between may be lost. But then all earlier writes to that file must be lost, too, or known to
// git: a single missing write is our fault.
func TestGitWins(t *testing.T) {
	// Not in parallel: until it is git, a forked process holds files open that other tests have just written, and a
	// leftover that somebody has open stays.
	testrig.Campaign(t) // in a small form each command of git waits half a second for the second look, and proves little
	testrig.Need(t, "git")
	rounds := 8
	// Each command costs half a second, because the look after it waits for the second look. The two checkouts are half of
	// the commands.
	branches, writes := []string{"side", "main"}, 20
	g := newGitDesk(t)
	var running sync.WaitGroup
	for i := range 7 {
		running.Go(func() { g.write(i) })
	}
	defer running.Wait()
	defer close(g.stop)
	for round := range rounds {
		// To the other branch and back, with what the clients have written in the meantime: committed, or stashed.
		for i, branch := range branches {
			g.somethingNew()
			if i == 0 {
				g.commit()
			}
			g.untilDone("checkout", "-q", branch)
		}
		g.somethingNew()
		g.step("stash", "-q")
		g.somethingNew()
		g.pop()
		g.pull(round)
	}
	g.still(func() {
		g.commit()
		g.must("fsck")
		for _, name := range g.names("*.tmp") {
			t.Errorf("%s was left behind", name)
		}
		testrig.Figure(t, "%d git commands, %d of them refused by git, %d conflicts; %d writes answered, %d of them known to git alone, %d done away with by git; answers %v; kept %v",
			g.commands, g.failed, g.conflicts, g.answered, g.settled, g.discarded, g.statuses, g.names("*~"))
		if g.answered < writes*rounds || g.settled < rounds || 10*g.discarded > g.answered {
			t.Error("that proves little")
		}
	})
}

// An ack is a write whose success was answered to the client.
type ack struct {
	token      string // stands in the file, and nowhere else
	file       string
	begin, end time.Time
}

var (
	ackToken   = regexp.MustCompile(`\bw\d+n\d+\b`)
	peopleLine = regexp.MustCompile(`(?m)^.*as of .*$`)
	asOf       = regexp.MustCompile(`as of [a-z]+-\d+`)
)

func tokens(content string) map[string]bool {
	all := map[string]bool{}
	for _, token := range ackToken.FindAllString(content, -1) {
		all[token] = true
	}
	return all
}

// people returns the lines that people have written into a file.
func people(content string) string {
	return strings.Join(peopleLine.FindAllString(content, -1), "\n")
}

// look compares the folder, the server and git after a command that began at start. done reports whether git succeeded;
// if it refused and nothing is in conflict, the server has nothing to load. discards means that git may overwrite what
// it has not looked at.
func (g *gitDesk) look(start time.Time, command string, discards, done bool) {
	g.t.Helper()
	g.still(func() {
		g.t.Helper()
		index, conflicts := g.index()
		tree := map[string]string{}
		for _, name := range slices.Concat(g.names("*.hcl"), g.names("*.hcl.*~")) {
			b, err := os.ReadFile(filepath.Join(g.dir, name))
			if err != nil {
				g.t.Fatal(err)
			}
			tree[name] = string(b)
		}
		for name, content := range index {
			if got, want := people(tree[name]), people(content); got != want || want == "" {
				g.t.Errorf("after %s: people's lines of %s are\n%s\nwant\n%s\nin\n%s", command, name, got, want, tree[name])
			}
		}
		if done || len(conflicts) > 0 {
			g.served(command, tree, conflicts)
		}
		g.account(start, command, tree, discards)
		if g.t.Failed() {
			g.t.FailNow()
		}
	})
}

// served checks that exactly the marked files are quarantined, and that all projects are still served.
func (g *gitDesk) served(command string, tree map[string]string, conflicts []string) {
	g.t.Helper()
	if err := g.source.Reload(g.t.Context()); err != nil {
		g.t.Errorf("after %s: %v", command, err)
	}
	bad := map[string]bool{}
	for _, p := range g.source.Status().Problems {
		if p.Severity == hclfile.Error {
			bad[filepath.Base(p.File)] = true
		}
	}
	for name, content := range tree {
		if strings.HasSuffix(name, "~") {
			continue
		}
		marked := strings.Contains(content, "<<<<<<< ")
		if bad[name] != marked || marked != slices.Contains(conflicts, name) {
			g.t.Errorf("after %s: %s quarantined: %v, in conflict: %v, want %v, %v\n%s",
				command, name, bad[name], slices.Contains(conflicts, name), marked, g.source.Status().Problems, content)
		}
		if _, err := g.resolver.ProjectBySlug(strings.TrimSuffix(name, ".hcl")); err != nil {
			g.t.Errorf("after %s: %s: %v", command, name, err)
		}
	}
	if len(conflicts) == 0 && !g.t.Run("fresh", func(t *testing.T) { g.compareFresh(t) }) {
		g.t.Errorf("after %s: see above", command)
	}
}

// account checks that every acknowledged write still exists.
func (g *gitDesk) account(start time.Time, command string, tree map[string]string, discards bool) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	there := map[string]map[string]bool{}
	for name, content := range tree {
		file, _, _ := strings.Cut(name, ".hcl")
		if there[file+".hcl"] == nil {
			there[file+".hcl"] = map[string]bool{}
		}
		maps.Copy(there[file+".hcl"], tokens(content))
	}
	var gone []*ack
	for _, a := range g.acks {
		if !there[a.file][a.token] {
			gone = append(gone, a)
		}
	}
	if len(gone) == 0 {
		return
	}
	known := tokens(g.must("cat-file", "--batch-all-objects", "--batch"))
	for _, a := range gone {
		if known[a.token] {
			g.settled++
			continue
		}
		if g.discarded++; !discards || a.end.Before(start) {
			g.t.Errorf("%s was answered for %v before %s, and is neither in %s nor does git know it:\n%s",
				a.token, start.Sub(a.end), command, a.file, tree[a.file])
		}
		for _, old := range g.acks {
			if old.file == a.file && old.end.Before(a.begin) && there[a.file][old.token] && !known[old.token] {
				g.t.Errorf("after %s: %s is gone from %s, and %s, which is older and unknown to git, is there: that was not git\n%s",
					command, a.token, a.file, old.token, tree[a.file])
			}
		}
	}
	maps.DeleteFunc(g.acks, func(token string, a *ack) bool { return slices.Contains(gone, a) })
}

// write is a client: four write the description of a project each, the others add domains to the same two projects, and
// the last of them makes a few projects. Between its writes it pauses for about as long as git takes to look at the
// tree, with variation, so that git often finds nothing in its way and some writes come while it works.
func (g *gitDesk) write(i int) {
	random := rand.New(rand.NewPCG(1, uint64(i)))
	var before string // what this client wrote last, where it writes over that
	for n := 0; ; n++ {
		select {
		case <-g.stop:
			return
		case <-time.After(time.Duration(random.Int64N(int64(300 * time.Millisecond)))):
		}
		token := fmt.Sprintf("w%dn%d", i, n)
		slug, method, path, body := fmt.Sprintf("p%d", i), "PUT", "", `{"description":"`+token+`"}`
		switch {
		case i == 6 && n < 30 && n%10 == 0: // few, for a branch without them may not seem to be an accident
			slug, method, path, body = token, "POST", "/api/platform/projects", `{"name":"`+token+`","slug":"`+token+`"}`
		case i >= 4:
			slug, method, body = []string{"p4", "p5"}[(i+n)%2], "POST", `{"domain":"`+token+`.example"}`
		}
		g.world.RLock()
		if path == "" {
			p, err := g.resolver.ProjectBySlug(slug)
			if err != nil {
				g.t.Error(err)
				g.world.RUnlock()
				return
			}
			if path = fmt.Sprintf("/api/platform/projects/%d", p.ID); method == "POST" {
				path += "/domains"
			}
		}
		a := &ack{token: token, file: slug + ".hcl", begin: time.Now()}
		r := g.client.ask(method, path, body, "")
		a.end = time.Now()
		g.mu.Lock()
		g.statuses[r.status]++
		switch r.status {
		case http.StatusOK, http.StatusCreated:
			g.answered++
			g.acks[token] = a
			if method == "PUT" {
				delete(g.acks, before)
				before = token
			}
		case http.StatusConflict, http.StatusServiceUnavailable:
		default:
			g.t.Errorf("%s %s %s: %d %s", method, path, body, r.status, r.body)
		}
		g.mu.Unlock()
		g.world.RUnlock()
	}
}
