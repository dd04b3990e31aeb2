// Package gitguard tells whether somebody's git is at work in a folder, so that writes do not come in between its steps.
//
// Git locks its index, reads the files, and writes its result into the tree. A checkout does all that under the lock. A
// stash, its pop and a merge take the lock several times and overwrite a file at the end that they read under the first
// lock; but each lock is a file that is created and removed, which changes the mtime of its folder. So a write that sees
// no lock and a folder that was quiet for a tenth of a second, and sees the same again after it has put its content in
// place, was finished before git read the files.
//
// The package looks at git's folder, and runs no git. What this service does in the folder itself goes through Turn, and
// does not count.
package gitguard

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/resolver/catalog"
)

const (
	// patience is how long a write waits for git before it is refused: a commit holds git's lock for some hundredths of
	// a second, and a person's checkout is rarely longer.
	patience = 2 * time.Second
	wait     = 5 * time.Millisecond // polling interval of a waiting write
	// quiet is the longest gap between two of git's locks in one operation: git runs the reset of a stash in a process
	// of its own, which takes about 15 ms on an idle machine.
	quiet = 100 * time.Millisecond
)

// ErrBusy refuses a write while git is at work.
var ErrBusy = busy("git is at work in the config folder")

func busy(why string) error {
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: why + "; try again in a moment"}
}

// A Guard watches the checkout of one folder. It is safe for concurrent use.
type Guard struct {
	root func() (string, error) // the folder, links resolved
	turn sync.Mutex             // held while a round of writes is put in place, and during Turn
	own  atomic.Int64           // mtime of git's folder after the last Turn, in nanoseconds
}

// New makes the Guard of a folder. root returns it with links resolved; it may move.
func New(root func() (string, error)) *Guard { return &Guard{root: root} }

// Lock keeps Turn from running until Unlock: a round of writes is put in place meanwhile.
func (g *Guard) Lock() { g.turn.Lock() }

// Unlock ends Lock.
func (g *Guard) Unlock() { g.turn.Unlock() }

// Turn runs f, which works in git's folder, while no write replaces a file. The writes that follow do not take its
// traces for a person's git. f must hold git's index.lock while it changes refs or the index, so that no other git can
// do so meanwhile. If another git is at work, f does not run, and the error is an UNAVAILABLE *catalog.Error.
func (g *Guard) Turn(f func() error) error {
	g.turn.Lock()
	defer g.turn.Unlock()
	if git := g.Now(); git.Working() {
		return git.refusal()
	}
	err := f()
	g.own.Store(0)
	if now := g.Now(); !now.Locked && now.unfinished == "" {
		g.own.Store(now.touched)
	}
	return err
}

// Patient waits until git is not at work, makes a write, and repeats it from the start if git came in between. It holds
// no locks while it waits, so that writes to the same file do not queue up. The write is refused if git does not finish
// in time, or waits for a person itself.
func (g *Guard) Patient(ctx context.Context, write func(context.Context) error) error {
	for until := time.Now().Add(patience); ; {
		git, late := g.Now(), time.Now().After(until)
		switch {
		case !git.Working():
			if err := write(ctx); !errors.Is(err, ErrBusy) || late {
				return err
			}
		case git.stopped(), late, ctx.Err() != nil:
			return git.refusal()
		default:
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
	}
}

// A State is the visible state of git's work. Two are equal if git has done nothing in between.
type State struct {
	folder  string // see Guard.folder
	Locked  bool   // git holds its lock
	touched int64  // mtime of the lock's folder, in nanoseconds
	// unfinished names the operation in which git has stopped for a person's decision: merge, rebase …; "" for none.
	unfinished string
}

// stopped reports whether git waits for a person, rather than being between two of its own steps: a running rebase has
// the same marks.
func (s State) stopped() bool {
	return s.unfinished != "" && !s.Locked && time.Since(time.Unix(0, s.touched)) > patience
}

// refusal returns why a write is refused.
func (s State) refusal() error {
	if s.unfinished == "" {
		return ErrBusy
	}
	return busy("a git " + s.unfinished +
		" is not finished in the config folder, and aborting it would take the write away; finish or abort it")
}

// marks are the files that git keeps in its folder while an operation is unfinished.
var marks = [...]struct{ name, of string }{
	{"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"rebase-merge", "rebase"},
	{"rebase-apply", "rebase"},
}

// Now returns the state of the checkout that contains the folder, zero for none.
func (g *Guard) Now() State { return g.in(g.folder()) }

// Moved reports whether git has done anything since it was in a state.
func (g *Guard) Moved(since State) bool { return g.in(since.folder) != since }

// in is Now for a folder that Guard.folder has returned a moment ago: looking for it again costs a write 1.5 %.
func (g *Guard) in(git string) (now State) {
	if git == "" {
		return now
	}
	now.folder = git
	_, err := os.Lstat(filepath.Join(git, "index.lock"))
	now.Locked = err == nil
	if folder, err := os.Lstat(git); err == nil {
		if now.touched = folder.ModTime().UnixNano(); now.touched == g.own.Load() {
			now.touched = 0 // the trace of our own work
		}
	}
	for _, m := range marks {
		if _, err := os.Lstat(filepath.Join(git, m.name)); err == nil {
			now.unfinished = m.of
		}
	}
	return now
}

// Working reports whether git is at work, or was so recently that it may not be finished. A time in the future comes
// from another clock, and is ignored.
func (s State) Working() bool {
	age := time.Since(time.Unix(0, s.touched))
	return s.Locked || s.unfinished != "" || -quiet < age && age < quiet
}

// folder returns the folder with the index of the checkout that contains the config folder (links resolved), "" for
// none.
func (g *Guard) folder() string {
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
