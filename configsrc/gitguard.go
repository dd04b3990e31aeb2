package configsrc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/configsrc/edits"
)

const (
	// gitPatience is how long a write waits for git before it is refused: a commit holds git's lock for some hundredths of
	// a second, and a person's checkout is rarely longer.
	gitPatience = 2 * time.Second
	gitRetry    = 5 * time.Millisecond // polling interval of a waiting write
	// gitQuiet is the longest gap between two of git's locks in one operation: git runs the reset of a stash in a process
	// of its own, which takes about 15 ms on an idle machine.
	gitQuiet = 100 * time.Millisecond
)

// errGitBusy refuses a write while git is at work.
var errGitBusy = edits.Busy("git is at work in the config folder")

// A gitGuard tells whether a person's git is at work in a folder, so that writes do not come in between its steps. It
// looks at git's folder, and runs no git. It is safe for concurrent use.
//
// Git locks its index, reads the files, and writes its result into the tree. A checkout does all that under the lock. A
// stash, its pop and a merge take the lock several times and overwrite a file at the end that they read under the first
// lock; but each lock is a file that is created and removed, which changes the mtime of its folder. So a write that
// sees no lock and a folder that was quiet for a tenth of a second, and sees the same again after it has put its
// content in place, was finished before git read the files.
type gitGuard struct {
	root func() (string, error) // the folder, links resolved
	turn sync.Mutex             // held while a round of writes is put in place, and during takeTurn
	own  atomic.Int64           // mtime of git's folder after the last takeTurn, in nanoseconds
}

// newGitGuard makes the gitGuard of a folder. root returns it with links resolved; it may move.
func newGitGuard(root func() (string, error)) *gitGuard { return &gitGuard{root: root} }

// lock keeps takeTurn from running until unlock: a round of writes is put in place meanwhile.
func (g *gitGuard) lock() { g.turn.Lock() }

// unlock ends lock.
func (g *gitGuard) unlock() { g.turn.Unlock() }

// takeTurn runs f, which works in git's folder, while no write replaces a file. The writes that follow do not take its
// traces for a person's git. f must hold git's index.lock while it changes refs or the index, so that no other git can
// do so meanwhile. If another git is at work, f does not run, and the error is an UNAVAILABLE *catalog.Error.
func (g *gitGuard) takeTurn(f func() error) error {
	g.turn.Lock()
	defer g.turn.Unlock()
	if git := g.state(); git.working() {
		return git.refusal()
	}
	err := f()
	g.own.Store(0)
	if now := g.state(); !now.locked && now.unfinished == "" {
		g.own.Store(now.touched)
	}
	return err
}

// runPatiently waits until git is not at work, makes a write, and repeats it from the start if git came in between. It
// holds no locks while it waits, so that writes to the same file do not queue up. The write is refused if git does not
// finish in time, or waits for a person itself.
func (g *gitGuard) runPatiently(ctx context.Context, write func(context.Context) error) error {
	for until := time.Now().Add(gitPatience); ; {
		git, late := g.state(), time.Now().After(until)
		switch {
		case !git.working():
			if err := write(ctx); !errors.Is(err, errGitBusy) || late {
				return err
			}
		case git.stopped(), late, ctx.Err() != nil:
			return git.refusal()
		default:
			select {
			case <-time.After(gitRetry):
			case <-ctx.Done():
			}
		}
	}
}

// A gitState is the visible state of git's work. Two are equal if git has done nothing in between.
type gitState struct {
	folder  string // see gitGuard.folder
	locked  bool   // git holds its lock
	touched int64  // mtime of the lock's folder, in nanoseconds
	// unfinished names the operation in which git has stopped for a person's decision: merge, rebase …; "" for none.
	unfinished string
}

// stopped reports whether git waits for a person, rather than being between two of its own steps: a running rebase has
// the same marks.
func (s gitState) stopped() bool {
	return s.unfinished != "" && !s.locked && time.Since(time.Unix(0, s.touched)) > gitPatience
}

// refusal returns why a write is refused.
func (s gitState) refusal() error {
	if s.unfinished == "" {
		return errGitBusy
	}
	return edits.Busy("a git " + s.unfinished +
		" is not finished in the config folder, and aborting it would take the write away; finish or abort it")
}

// gitMarks are the files that git keeps in its folder while an operation is unfinished.
var gitMarks = [...]struct{ name, of string }{
	{"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"rebase-merge", "rebase"},
	{"rebase-apply", "rebase"},
}

// state returns the state of the checkout that contains the folder, zero for none.
func (g *gitGuard) state() gitState { return g.stateIn(g.folder()) }

// hasMoved reports whether git has done anything since it was in a state.
func (g *gitGuard) hasMoved(since gitState) bool { return g.stateIn(since.folder) != since }

// stateIn is state for a folder that gitGuard.folder has returned a moment ago: looking for it again costs a write 1.5
// %.
func (g *gitGuard) stateIn(git string) (now gitState) {
	if git == "" {
		return now
	}
	now.folder = git
	_, err := os.Lstat(filepath.Join(git, "index.lock"))
	now.locked = err == nil
	if folder, err := os.Lstat(git); err == nil {
		if now.touched = folder.ModTime().UnixNano(); now.touched == g.own.Load() {
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
func (s gitState) working() bool {
	age := time.Since(time.Unix(0, s.touched))
	return s.locked || s.unfinished != "" || -gitQuiet < age && age < gitQuiet
}

// folder returns the folder with the index of the checkout that contains the config folder (links resolved), "" for
// none.
func (g *gitGuard) folder() string {
	root, err := g.root()
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
