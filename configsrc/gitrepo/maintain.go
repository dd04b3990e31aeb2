package gitrepo

import (
	"cmp"
	"context"
	"time"
)

// Maintenance says when the repository's objects are packed. Zero values stand for the defaults.
type Maintenance struct {
	Every time.Duration // how often it is looked at; 1 min
	Quiet time.Duration // without a commit, after which it runs; 10 min
	Loose int           // objects with a file of their own, above which it runs without waiting; 20,000
}

// maintainMost bounds the runs of git for one maintenance; each packs up to 50,000 objects.
const maintainMost = 20

// maintainLoop packs the objects that commits have made, with and without a remote, until ctx ends. Each commit makes
// three files or more, and git's own maintenance is off (gc.auto), since it would run in the middle of a commit.
func (r *Repo) maintainLoop(ctx context.Context) {
	o := r.o.Maintenance
	o.Every, o.Quiet, o.Loose = cmp.Or(o.Every, time.Minute), cmp.Or(o.Quiet, 10*time.Minute), cmp.Or(o.Loose, 20_000)
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	var done uint64 // commits and pulls that a maintenance has packed
	told := ""      // the error that is in the log
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		st := r.Status()
		made := st.Commits + st.Pulls
		quiet := made > done && time.Since(st.LastCommit) > o.Quiet
		if !r.writable.Load() || !quiet && r.git.LooseObjects(o.Loose+1) <= o.Loose {
			continue
		}
		err := r.maintain(ctx, o.Loose)
		if err == nil {
			done, told = made, ""
		} else if ctx.Err() == nil && told != err.Error() {
			told = err.Error()
			r.o.Logger.Warn("git: maintenance has failed; it is tried again", "error", err)
		}
	}
}

// maintain packs loose objects. A run removes those that the run before has packed, and the pack is on the disk by
// then.
func (r *Repo) maintain(ctx context.Context, most int) error {
	for n := range maintainMost {
		if err := r.git.PackLoose(ctx); err != nil {
			return err
		}
		if n > 0 && r.git.LooseObjects(most+1) <= most {
			break
		}
	}
	return nil
}
