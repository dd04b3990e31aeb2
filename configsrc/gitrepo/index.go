package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fingerpost/configsrc/gitrepo/plumbing"
)

// scratchFolder has, in git's folder, the copy of people's index that is edited before it takes the index's place. It is a
// folder of its own because the copy is made while others may work: what changes in git's folder itself is taken for the
// work of a git, and writes wait for that.
const scratchFolder = "fingerpost-scratch"

// An index is git's index, which people share with the service.
type index struct {
	lock  *plumbing.IndexLock
	steps []step // of our last commits, the oldest first, see align
}

// A step is what a commit of ours has done to a path.
type step struct {
	path     string
	old, now plumbing.Entry
	at       time.Time
}

// Steps are repeated, every so often, for as long as a git may take from its reading of the index to its lock. Those
// are milliseconds; on a machine that is out of breath, seconds.
const repeatSteps, repeatEvery = 10 * time.Second, 2 * time.Second

// align brings people's index up to date for the paths that a commit has changed, where its entry was the one of the
// commit before: what a person has staged stays. tree is the commit's. The caller holds git's lock.
//
// It repeats the steps of the last seconds. git commit and git stash read the index first and lock it then: if our
// commit comes in between, they write back what the index was before it. Our change would then look like a staged
// revert for ever, and the person's next commit would make it.
func (r *Repo) align(ctx context.Context, tree string, old, changes map[string]plumbing.Entry) error {
	r.index.steps = append(r.index.recent(), stepsOf(old, changes)...)
	behind, err := r.behind(ctx, tree, r.index.steps)
	if err != nil || len(behind) == 0 {
		return err
	}
	return r.withOwnIndex(r.updateOf(ctx, behind))
}

// updateOf returns the edit of our copy of the index that behind has told.
func (r *Repo) updateOf(ctx context.Context, behind []byte) func(env []string) error {
	return func(env []string) error {
		_, err := r.git.Call(ctx, plumbing.LocalLimit, env, behind, "update-index", "-z", "--index-info")
		return err
	}
}

// A readyIndex is what align will make of people's index, made before git's lock is taken: no write goes on while it is
// held, and to read and write the index of 100,000 files takes a tenth of a second.
type readyIndex struct {
	was    fs.FileInfo // people's index that it was made of
	edited bool        // our copy has what is new; else nothing is
}

// makeReadyIndex makes the index for a commit that is going to be made; nil: it has to be aligned under the lock. The
// caller holds r.work until it is used or dropped.
func (r *Repo) makeReadyIndex(ctx context.Context, tree string, old, changes map[string]plumbing.Entry) *readyIndex {
	was, err := os.Lstat(filepath.Join(r.git.GitDir, "index"))
	if err != nil {
		return nil
	}
	behind, err := r.behind(ctx, tree, append(r.index.recent(), stepsOf(old, changes)...))
	if err != nil {
		return nil
	}
	if len(behind) > 0 {
		err := r.editOwnIndex(r.updateOf(ctx, behind))
		if err == nil {
			err = plumbing.SyncFolder(r.ownIndex())
		}
		if err != nil {
			r.dropOwnIndex()
			return nil
		}
	}
	return &readyIndex{was: was, edited: len(behind) > 0}
}

// alignTo is align with an index that was made ready before, if people's is still the one that it was made of: every git
// replaces the file. The caller holds git's lock.
func (r *Repo) alignTo(ctx context.Context, ready *readyIndex, tree string, old, changes map[string]plumbing.Entry) error {
	is, err := os.Lstat(filepath.Join(r.git.GitDir, "index"))
	if ready == nil || err != nil || !os.SameFile(is, ready.was) || is.Size() != ready.was.Size() ||
		!is.ModTime().Equal(ready.was.ModTime()) {
		return r.align(ctx, tree, old, changes)
	}
	r.index.steps = append(r.index.recent(), stepsOf(old, changes)...)
	if !ready.edited {
		return nil
	}
	return r.replaceIndex()
}

// recent returns the steps that are still repeated, and forgets the others.
func (x *index) recent() []step {
	since := time.Now().Add(-repeatSteps)
	x.steps = slices.DeleteFunc(x.steps, func(s step) bool { return s.at.Before(since) })
	return slices.Clip(x.steps)
}

func stepsOf(old, changes map[string]plumbing.Entry) (list []step) {
	now := time.Now()
	for path, e := range changes {
		list = append(list, step{path, old[path], e, now})
	}
	return list
}

// followFor is how long the index is brought up to date again after it could not follow a move of the branch, and
// followMost the number of files up to which it is.
const followFor, followMost = time.Hour, 1000

// noteMove notes what a move of the branch has changed, for alignAgain: the index could not follow.
func (x *index) noteMove(old, changes map[string]plumbing.Entry) {
	if len(changes) > followMost { // "git reset" does it, too
		return
	}
	for path, e := range changes {
		x.steps = append(x.steps, step{path, old[path], e, time.Now().Add(followFor)})
	}
}

// behind returns the entries in which people's index is behind our steps to the tree, as update-index takes them.
func (r *Repo) behind(ctx context.Context, tree string, steps []step) ([]byte, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	last, replaced := map[string]plumbing.Entry{}, map[step]bool{}
	for _, s := range steps {
		last[s.path] = s.now
		replaced[step{path: s.path, old: s.old}] = true
	}
	args := []string{"--literal-pathspecs", "ls-files", "-s", "-z", "--"}
	for path := range last {
		args = append(args, path)
	}
	out, err := r.git.Call(ctx, plumbing.LocalLimit, nil, nil, args...)
	if err = r.indexRead(err); err != nil {
		return nil, err
	}
	staged := map[string]plumbing.Entry{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		words, path, _ := strings.Cut(line, "\t")
		if f := strings.Fields(words); len(f) == 3 {
			if staged[path] = (plumbing.Entry{Mode: f[0], ID: f[1]}); f[2] != "0" {
				staged[path] = plumbing.Entry{Mode: "unmerged", ID: f[1]}
			}
		}
	}
	var in bytes.Buffer
	trees := newScratch(r, tree)
	for path, now := range last {
		is := staged[path]
		if is == now || !replaced[step{path: path, old: is}] {
			continue
		}
		if has, err := plumbing.Find(trees.readTree, tree, path); err != nil {
			return nil, err
		} else if has != now { // people have switched to another branch, or have gone back
			continue
		}
		if now.ID == "" {
			fmt.Fprintf(&in, "0 %s\t%s\x00", strings.Repeat("0", len(is.ID)), path)
		} else {
			fmt.Fprintf(&in, "%s %s\t%s\x00", now.Mode, now.ID, path)
		}
	}
	return in.Bytes(), nil
}

// unfinished reports whether alignAgain may have something to do.
func (r *Repo) unfinished() bool {
	r.work.Lock()
	defer r.work.Unlock()
	return len(r.index.steps) > 0 || len(r.applied) > 0
}

// alignAgain repeats our last steps, if people's index needs it, and what could not be done after the branch had moved.
func (r *Repo) alignAgain(ctx context.Context) error {
	r.work.Lock()
	defer r.work.Unlock()
	if err := r.dropApplied(ctx); err != nil {
		return err
	}
	if r.Status().IndexError != "" {
		if err := r.checkIndex(ctx); err != nil {
			return err
		}
	}
	h, err := r.head(ctx)
	if err != nil || h.commit == "" {
		return err
	}
	if behind, err := r.behind(ctx, h.tree, r.index.recent()); err != nil || len(behind) == 0 {
		return err
	}
	return r.files.GitTurn(func() error {
		return r.index.lock.Under(func() error { return r.align(context.WithoutCancel(ctx), h.tree, nil, nil) })
	})
}

// checkIndex reads people's index, and notes in the status if that fails.
func (r *Repo) checkIndex(ctx context.Context) error {
	_, err := r.git.Run(ctx, "--literal-pathspecs", "ls-files", "-s", "--", scratchFolder)
	return r.indexRead(err)
}

// indexRead notes in the status whether people's index could be read, and what to do if not: only a person knows what
// was staged in it.
func (r *Repo) indexRead(err error) error {
	text := ""
	if plumbing.ExitCode(err) > 0 {
		index := filepath.Join(r.git.GitDir, "index")
		text = fmt.Sprintf("git's index cannot be read: %v; run \"rm %s\" and \"git reset\" in the clone: "+
			"what was staged is lost, the files stay", err, index)
		err = errors.New(text)
	}
	r.change(func(s *Status) {
		if s.IndexError == "" && text != "" {
			r.o.Logger.Warn("git: " + text)
		}
		s.IndexError = text
	})
	return err
}

// alignAfter is align for a commit after which the process was killed.
func (r *Repo) alignAfter(ctx context.Context, id string) error {
	c, err := r.git.Commit(id)
	if err != nil {
		return err
	}
	h, err := r.head(ctx)
	if err != nil || h.commit != id {
		return err
	}
	var before string
	if len(c.Parents) > 0 {
		p, err := r.git.Commit(c.Parents[0])
		if err != nil {
			return err
		}
		before = p.Tree
	}
	old, changes, err := r.git.Diff(ctx, before, c.Tree)
	if err != nil || len(changes) == 0 {
		return err
	}
	return r.index.lock.Under(func() error { return r.align(ctx, c.Tree, old, changes) })
}
