package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api/ops"
)

// TestCommitWhilePeopleWork lets API clients write, with the README's script, while a person commits, stages, stashes,
// pulls and rebases in the same checkout, and another one pushes. In the end nothing is lost: the last commit has every
// write and everything that people have committed. Commits of the script contain only config files, and no person's
// commit reverts one.
func TestCommitWhilePeopleWork(t *testing.T) {
	writes := campaign(t, 100, 10)
	for run := range campaign(t, 16, 1) {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, uint64(run))
			d.start()
			var person sync.WaitGroup
			done := make(chan struct{})
			person.Go(func() { d.work(done) })
			made := 0
			for ; made < writes; made++ {
				d.change(made)
				d.rest(100*time.Millisecond, nil)
			}
			// On a slow machine few of the pauses are long enough for a commit, and on a fast one ten writes leave people little
			// time: then the client goes on, one write a commit.
			for ; made < writes+20 && (d.commits() < leastCommits || d.lines.Load() < leastCommits); made++ {
				d.untilCommitted()
				d.change(made)
			}
			close(done)
			person.Wait()
			d.untilCommitted()
			d.halt()
			d.check(made)
		})
	}
}

// leastCommits is the number of commits below which a run proves little.
const leastCommits = 3

// commits returns the number of commits that the script has made by now, 0 while a person's git moves the branch.
func (d *desk) commits() int {
	out, err := d.try("log", "--author=fingerpost", "--format=%x00", "--first-parent")
	if err != nil {
		return 0
	}
	return strings.Count(out, "\x00")
}

// rest waits for a random time below most. Person and clients rest, so that their work meets the script at any of its
// steps, and sometimes at none.
func (d *desk) rest(most time.Duration, done <-chan struct{}) {
	select {
	case <-time.After(rand.N(most)):
	case <-done:
	}
}

// work does the person's work until done.
func (d *desk) work(done <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-done:
			d.untilDone("commit", "-qm", "the rest", "--allow-empty")
			return
		default:
			start := time.Now()
			d.act(n)
			// The pauses grow with the time that git takes, so that on a slow machine, too, some are long enough for the script.
			d.rest(max(800*time.Millisecond, 4*time.Since(start)), done)
		}
	}
}

// A desk is a rig whose folder is a checkout in which a person works, too.
type desk struct {
	*rig
	checkout
	random   *rand.Rand        // of the client
	projects map[string]string // what the client has been told is done, name by slug
	ids      map[string]string
	aborted  int          // merges and rebases
	lines    atomic.Int64 // that people have committed, here and in the other clone
	other    *checkout    // of another person, who pushes
}

func newDesk(t *testing.T, seed uint64) *desk {
	needGit(t)
	d := &desk{rig: idleRig(t, t.TempDir(), nil), random: rand.New(rand.NewPCG(seed, 1)), projects: map[string]string{}, ids: map[string]string{}}
	d.checkout = checkout{t, d.rig.dir}
	d.flags = []string{"--after-write", readmeCommand(t), "--max-delete", "100%"}
	d.write(".gitignore", "/.fingerpost/\n")
	for _, name := range []string{"mine.txt", "staged.txt", "stashed.txt", "theirs.txt"} {
		d.write("people/"+name, "start\n")
	}
	d.git("init", "-q", "-b", "main")
	d.git("add", "-A")
	d.git("commit", "-qm", "start")
	origin := filepath.Join(t.TempDir(), "origin.git")
	d.git("clone", "-q", "--bare", ".", origin)
	d.git("remote", "add", "origin", origin)
	d.git("fetch", "-q")
	d.git("branch", "-q", "-u", "origin/main")
	d.other = &checkout{t, filepath.Join(t.TempDir(), "other")}
	d.git("clone", "-q", origin, d.other.dir)
	return d
}

// change makes one write, and waits until the server accepts it.
func (d *desk) change(n int) {
	method, path, slug := http.MethodPost, "/api/platform/projects", fmt.Sprintf("w%d", n)
	body := fmt.Sprintf(`{"name":"Write %d","slug":%q}`, n, slug)
	if len(d.projects) > 2 && d.random.IntN(3) > 0 {
		for slug = range d.projects {
			break
		}
		method, path, body = http.MethodPut, path+"/"+d.ids[slug], fmt.Sprintf(`{"name":"Write %d"}`, n)
		if d.random.IntN(4) == 0 {
			method, body = http.MethodDelete, ""
		}
	}
	err := poll(patience, func() error {
		if d.rig.t.Failed() {
			return nil
		}
		got := d.ask(method, path, d.keys["write"], body)
		switch {
		case got.status == http.StatusCreated:
			d.ids[slug] = idOf(got)
			fallthrough
		case got.status == http.StatusOK && method != http.MethodDelete:
			d.projects[slug] = fmt.Sprintf("Write %d", n)
		case got.status == http.StatusOK:
			delete(d.projects, slug)
		default:
			return fmt.Errorf("%s %s: %d %s", method, path, got.status, got.body)
		}
		return nil
	})
	if err != nil {
		d.rig.t.Error(err)
	}
}

// untilDone repeats a git command, as a person does while the script holds git's lock. It first aborts a merge or
// rebase that the lock has stopped half-way.
func (d *desk) untilDone(args ...string) {
	var last string
	err := poll(patience, func() (err error) {
		if last, err = d.try(args...); err == nil || d.rig.t.Failed() {
			return nil
		}
		for mark, command := range map[string]string{"MERGE_HEAD": "merge", "rebase-merge": "rebase"} {
			if _, stopped := os.Stat(filepath.Join(d.checkout.dir, ".git", mark)); stopped == nil {
				d.aborted++
				if out, err := d.try(command, "--abort"); err != nil {
					return fmt.Errorf("%s --abort: %w\n%s", command, err, out)
				}
			}
		}
		return err
	})
	if err != nil {
		d.rig.t.Errorf("git %q: %v\n%s", args, err, last)
	}
}

func (d *desk) append(c *checkout, name, line string) {
	b, err := os.ReadFile(filepath.Join(c.dir, "people", name))
	if err != nil {
		d.rig.t.Error(err)
	}
	c.write("people/"+name, string(b)+line+"\n")
}

// act is one thing that the person does.
func (d *desk) act(n int) {
	line := fmt.Sprintf("person %d", n)
	switch what := []string{"commit", "stage", "stash", "pull", "rebase"}[n%5]; what {
	case "commit":
		d.append(&d.checkout, "mine.txt", line)
		d.untilDone("add", "people/mine.txt")
		d.untilDone("commit", "-qm", line) // with what was staged before
	case "stage":
		d.append(&d.checkout, "staged.txt", line)
		d.untilDone("add", "people/staged.txt")
	case "stash":
		d.append(&d.checkout, "stashed.txt", line)
		d.untilDone("stash", "push", "-q", "--", "people/stashed.txt")
		d.untilDone("stash", "pop", "-q")
		d.untilDone("commit", "-qm", line, "--", "people/stashed.txt")
	default:
		d.untilDone("commit", "-qm", line, "--allow-empty") // a pull wants an index without staged changes
		d.other.git("pull", "-q", "--ff-only")
		d.append(d.other, "theirs.txt", line)
		d.other.git("commit", "-qam", line)
		d.other.git("push", "-q")
		if what == "pull" {
			d.untilDone("pull", "-q", "--no-rebase", "--no-edit")
		} else {
			d.untilDone("pull", "-q", "--rebase", "--autostash")
		}
		d.untilDone("push", "-q", "origin", "HEAD:main") // else a rebase takes all projects away for a while
	}
	d.lines.Add(1)
}

// untilCommitted waits until the script has run for all writes. The pause after a failed run is up to a minute.
func (d *desk) untilCommitted() {
	d.rig.t.Helper()
	err := poll(3*patience, func() error {
		res, err := http.Get(d.ops + "/status")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		var st struct{ AfterWrite ops.AfterWriteStatus }
		if err := json.NewDecoder(res.Body).Decode(&st); err != nil {
			return err
		}
		if st.AfterWrite.Pending > 0 {
			return fmt.Errorf("%+v", st.AfterWrite)
		}
		return nil
	})
	if err != nil {
		d.rig.t.Error(err)
	}
}

// check compares the last commit, the files and the answers to the clients, and checks every commit in between.
func (d *desk) check(writes int) {
	t := d.rig.t
	t.Helper()
	d.is("status", d.git("status", "--porcelain"), "")
	d.git("fsck", "--strict", "--no-dangling")
	for slug, name := range d.projects {
		if text := d.git("show", "HEAD:projects.d/"+slug+".hcl"); !strings.Contains(text, fmt.Sprintf("%q", name)) {
			t.Errorf("%s in HEAD lacks %q:\n%s", slug, name, text)
		}
	}
	files := strings.Fields(d.git("ls-tree", "-r", "--name-only", "HEAD", "projects.d"))
	if want := len(d.projects) + len(rigFiles) + len(rigKeys); len(files) != want {
		t.Errorf("HEAD has %d config files, want %d: %v", len(files), want, files)
	}
	lines := 0
	for _, name := range []string{"mine.txt", "staged.txt", "stashed.txt", "theirs.txt"} {
		lines += strings.Count(d.git("show", "HEAD:people/"+name), "\nperson ")
	}
	if lines != int(d.lines.Load()) {
		t.Errorf("HEAD has %d lines of people, want %d", lines, d.lines.Load())
	}
	ours := 0
	for _, commit := range strings.Split(strings.TrimSpace(d.git("log", "--format=%x00%an", "--name-only", "--first-parent", "-m")), "\x00")[1:] {
		author, names, _ := strings.Cut(commit, "\n")
		if author == "fingerpost" {
			ours++
		}
		for _, name := range strings.Fields(names) {
			if strings.HasPrefix(name, "projects.d/") != (author == "fingerpost") && !strings.HasPrefix(commit, "A Person\n\n.gitignore\n") {
				t.Errorf("%s has committed %s", author, name)
			}
		}
	}
	if ours < leastCommits || d.lines.Load() < leastCommits {
		t.Errorf("that proves little: %d commits, %d things done by people", ours, d.lines.Load())
	}
	t.Logf("%d writes in %d commits, %d things done by people, %d of them interrupted", writes, ours, d.lines.Load(), d.aborted)
}
