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
		if !s.awaitGit(ctx, until) {
			return errGitBusy
		}
		if err := write(); !errors.Is(err, errGitBusy) || time.Now().After(until) {
			return err
		}
	}
}

// awaitGit reports whether git has gone by then.
func (s *Source) awaitGit(ctx context.Context, until time.Time) bool {
	if !s.gitNow().working() {
		return true
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	tick := time.NewTicker(gitWait)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			if !s.gitNow().working() {
				return true
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
}

// gitNow is the state of the checkout that the folder is part of, zero for none.
func (s *Source) gitNow() (now gitState) {
	git := s.gitFolder()
	if git == "" {
		return now
	}
	now.locked = gitLocked(git)
	if folder, ok := lookAt(git); ok {
		now.touched = folder.moved
	}
	return now
}

// working reports whether git is at work, or was so lately that it may not be done. A time in the future is that of
// another clock, and says nothing.
func (g gitState) working() bool {
	age := time.Since(time.Unix(0, g.touched))
	return g.locked || -gitQuiet < age && age < gitQuiet
}

// gitBusy reports whether git holds its lock in the checkout that the folder is part of.
func (s *Source) gitBusy() bool {
	git := s.gitFolder()
	return git != "" && gitLocked(git)
}

func gitLocked(git string) bool {
	_, locked := lookAt(filepath.Join(git, "index.lock"))
	return locked
}

// gitFolder is where the index of the checkout is that the folder, links followed, is part of, "" for none.
func (s *Source) gitFolder() string {
	_, above, err := s.where.find()
	if err != nil {
		return ""
	}
	for _, git := range above {
		switch there, ok := lookAt(git); {
		case ok && there.dir:
			return git
		case ok: // a worktree or submodule: "gitdir: <path>"
			b, err := os.ReadFile(git)
			line, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
			if err != nil || !ok {
				return ""
			}
			if filepath.IsAbs(line) {
				return line
			}
			return filepath.Join(filepath.Dir(git), line)
		}
	}
	return ""
}
