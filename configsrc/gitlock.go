package configsrc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// gitPatience is how long a write waits for git before it is refused: a commit holds git's lock for some hundredths
	// of a second, as the one of --after-write does after every write, and a person's checkout rarely for longer.
	gitPatience = 2 * time.Second
	gitWait     = 5 * time.Millisecond // between two looks at it, by whoever wants to write
	// gitQuiet is how long git may be between two of its locks: it starts the reset of a stash as a process of its own,
	// which takes some 15 ms on a machine with nothing else to do.
	gitQuiet = 100 * time.Millisecond
)

var errGitBusy = busy("git is at work in the config folder")

// patient makes a write, and makes it again from the start when git came in between. Nobody's lock is held while it
// waits, so that those who write the same file do not wait one behind the other.
func (s *Source) patient(ctx context.Context, write func() error) error {
	for until := time.Now().Add(gitPatience); ; {
		if err := s.awaitGit(ctx, until); err != nil {
			return err
		}
		if err := write(); !errors.Is(err, errGitBusy) || time.Now().After(until) {
			return err
		}
	}
}

// awaitGit waits until git has gone, and is an error where it has not by then, or waits for a person itself.
func (s *Source) awaitGit(ctx context.Context, until time.Time) error {
	now := s.gitNow()
	switch {
	case !now.working():
		return nil
	case now.stopped():
		return now.refusal()
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	tick := time.NewTicker(gitWait)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return now.refusal()
		case <-tick.C:
			if now = s.gitNow(); !now.working() {
				return nil
			}
		}
	}
}

// A gitState is what shows of git's work. Git locks its index, looks at the files, and writes into the tree what it has
// decided on: under the lock in a checkout. A stash, its pop and a merge take the lock several times, and write over a
// file at the last that they have looked at when they held the first; but each lock is a file that comes and goes, which
// touches its folder.
//
// So a write that sees no lock and a folder that has been quiet for gitQuiet, and the very same when it has put its
// content in place, was there before git looked.
type gitState struct {
	locked  bool
	touched int64 // when the lock's folder was, in nanoseconds
	// unfinished names what git has stopped in the middle of, so that a person decides: merge, rebase …; "" for nothing.
	unfinished string
}

// stopped reports whether git waits for a person, and not between two steps of its own: a rebase that goes on has the same
// marks.
func (g gitState) stopped() bool {
	return g.unfinished != "" && !g.locked && time.Since(time.Unix(0, g.touched)) > gitPatience
}

// refusal is why a write is refused.
func (g gitState) refusal() error {
	if g.unfinished == "" {
		return errGitBusy
	}
	return busy("a git " + g.unfinished + " is not finished in the config folder, and aborting it would take the write away; finish or abort it")
}

// gitMarks are what git leaves in its folder as long as something is unfinished.
var gitMarks = [...]struct{ name, of string }{
	{"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"rebase-merge", "rebase"}, {"rebase-apply", "rebase"},
}

// A gitDesk remembers what is unfinished in git's folder, as long as nothing comes or goes there.
type gitDesk struct {
	mu         sync.Mutex // guards what follows
	folder     string
	touched    int64
	unfinished string
}

func (d *gitDesk) look(folder string, touched int64) (unfinished string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.folder == folder && d.touched == touched {
		return d.unfinished
	}
	for _, m := range gitMarks {
		if _, err := os.Lstat(filepath.Join(folder, m.name)); err == nil {
			unfinished = m.of
		}
	}
	if d.folder = ""; time.Since(time.Unix(0, touched)) > gitQuiet { // else more may come without a change of the time
		d.folder, d.touched, d.unfinished = folder, touched, unfinished
	}
	return unfinished
}

// gitNow is the state of the checkout that the folder is part of, zero for none.
func (s *Source) gitNow() (now gitState) {
	git := s.gitFolder()
	if git == "" {
		return now
	}
	now.locked = gitLocked(git)
	if folder, err := os.Lstat(git); err == nil {
		now.touched = folder.ModTime().UnixNano()
		now.unfinished = s.git.look(git, now.touched)
	}
	return now
}

// working reports whether git is at work, or was so lately that it may not be done. A time in the future is that of
// another clock, and says nothing.
func (g gitState) working() bool {
	age := time.Since(time.Unix(0, g.touched))
	return g.locked || g.unfinished != "" || -gitQuiet < age && age < gitQuiet
}

// gitBusy reports whether git holds its lock in the checkout that the folder is part of.
func (s *Source) gitBusy() bool {
	git := s.gitFolder()
	return git != "" && gitLocked(git)
}

func gitLocked(git string) bool {
	_, err := os.Lstat(filepath.Join(git, "index.lock"))
	return err == nil
}

// gitFolder is where the index of the checkout is that the folder, links followed, is part of, "" for none.
func (s *Source) gitFolder() string {
	root, err := filepath.EvalSymlinks(s.o.Dir)
	if err != nil {
		return ""
	}
	if root, err = filepath.Abs(root); err != nil {
		return ""
	}
	for {
		git := filepath.Join(root, ".git")
		switch there, err := os.Lstat(git); {
		case err == nil && there.IsDir():
			return git
		case err == nil: // a worktree or submodule: "gitdir: <path>"
			b, err := os.ReadFile(git)
			line, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
			if err != nil || !ok {
				return ""
			}
			if filepath.IsAbs(line) {
				return line
			}
			return filepath.Join(root, line)
		}
		up := filepath.Dir(root)
		if up == root {
			return ""
		}
		root = up
	}
}
