package configsrc

import (
	"context"
	"errors"
	"time"
)

const (
	// gitPatience is how long a write waits for git before it is refused: a commit holds git's lock for some hundredths
	// of a second, as the one of --after-write does after every write, and a person's checkout rarely for longer.
	gitPatience = 2 * time.Second
	gitWait     = 5 * time.Millisecond // between two looks at its lock, by whoever wants to write
)

var errGitBusy = busy("git is at work in the config folder")

// patient makes a write, and makes it again from the start when git came in between. Nobody's lock is held while it
// waits, so that those who write the same file do not wait one behind the other.
func (s *Source) patient(ctx context.Context, write func() error) error {
	for until := time.Now().Add(gitPatience); ; {
		if !s.awaitGit(ctx, until) {
			return errGitBusy
		}
		if err := write(); !errors.Is(err, errGitBusy) {
			return err
		}
	}
}

// awaitGit reports whether git has gone by then.
func (s *Source) awaitGit(ctx context.Context, until time.Time) bool {
	if !gitBusy(s.o.Dir) {
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
			if !gitBusy(s.o.Dir) {
				return true
			}
		}
	}
}
