package configsrc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// gitPatience is how long a write waits for git before it is refused: a commit holds git's lock for some hundredths of
	// a second, and a person's checkout is rarely longer.
	gitPatience = 2 * time.Second
	gitWait     = 5 * time.Millisecond // polling interval of a waiting write
	// gitQuiet is the longest gap between two of git's locks in one operation: git runs the reset of a stash in a process
	// of its own, which takes about 15 ms on an idle machine.
	gitQuiet = 100 * time.Millisecond
)

var errGitBusy = busy("git is at work in the config folder")

// patient waits until git is not at work, makes a write, and repeats it from the start if git came in between. It holds
// no locks while it waits, so that writes to the same file do not queue up. The write is refused if git does not finish
// in time, or waits for a person itself.
func (s *Source) patient(ctx context.Context, write func(context.Context) error) error {
	for until := time.Now().Add(gitPatience); ; {
		git, late := s.gitNow(), time.Now().After(until)
		switch {
		case !git.working():
			if err := write(ctx); !errors.Is(err, errGitBusy) || late {
				return err
			}
		case git.stopped(), late, ctx.Err() != nil:
			return git.refusal()
		default:
			select {
			case <-time.After(gitWait):
			case <-ctx.Done():
			}
		}
	}
}

// A gitState is the visible state of git's work. Git locks its index, reads the files, and writes its result into the
// tree; a checkout does all that under the lock. A stash, its pop and a merge take the lock several times and overwrite
// a file at the end that they read under the first lock; but each lock is a file that is created and removed, which
// changes the mtime of its folder.
//
// So a write that sees no lock and a folder that was quiet for gitQuiet, and sees the same again after it has put its
// content in place, was finished before git read the files.
type gitState struct {
	folder  string // see gitFolder
	locked  bool
	touched int64 // mtime of the lock's folder, in nanoseconds
	// unfinished names the operation in which git has stopped for a person's decision: merge, rebase …; "" for none.
	unfinished string
}

// stopped reports whether git waits for a person, rather than being between two of its own steps: a running rebase has
// the same marks.
func (g gitState) stopped() bool {
	return g.unfinished != "" && !g.locked && time.Since(time.Unix(0, g.touched)) > gitPatience
}

// refusal returns why a write is refused.
func (g gitState) refusal() error {
	if g.unfinished == "" {
		return errGitBusy
	}
	return busy("a git " + g.unfinished +
		" is not finished in the config folder, and aborting it would take the write away; finish or abort it")
}

// gitMarks are the files that git keeps in its folder while an operation is unfinished.
var gitMarks = [...]struct{ name, of string }{
	{"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"rebase-merge", "rebase"},
	{"rebase-apply", "rebase"},
}

// gitNow returns the state of the checkout that contains the folder, zero for none.
func (s *Source) gitNow() (now gitState) { return s.gitIn(s.gitFolder()) }

// gitIn is gitNow for a folder that gitFolder has returned a moment ago: looking for it again costs a write 1.5 %.
func (s *Source) gitIn(git string) (now gitState) {
	if git == "" {
		return now
	}
	now.folder = git
	_, err := os.Lstat(filepath.Join(git, "index.lock"))
	now.locked = err == nil
	if folder, err := os.Lstat(git); err == nil {
		if now.touched = folder.ModTime().UnixNano(); now.touched == s.ownGit.Load() {
			now.touched = 0 // the trace of our own work
		}
	}
	for _, m := range gitMarks {
		if _, err := os.Lstat(filepath.Join(git, m.name)); err == nil {
			now.unfinished = m.of
		}
	}
	return now
}

// working reports whether git is at work, or was so recently that it may not be finished. A time in the future comes
// from another clock, and is ignored.
func (g gitState) working() bool {
	age := time.Since(time.Unix(0, g.touched))
	return g.locked || g.unfinished != "" || -gitQuiet < age && age < gitQuiet
}

// gitFolder returns the folder with the index of the checkout that contains the config folder (links resolved), "" for
// none.
func (s *Source) gitFolder() string {
	root, err := s.realDir()
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
