package gitrepo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/resolver/catalog"
)

const (
	gather = 100 * time.Millisecond // writes of one author that come in this time share a commit
	// The pause after a commit that could not be made doubles from the first value to the second.
	retryFirst, retryMost = 50 * time.Millisecond, 2 * time.Second
	flushAtMost           = 5 * time.Second // for the last commits of a process
	maxRaces              = 10              // lost races for a ref, before a pause
	maxGroup              = 1000            // writes in a commit
)

var (
	errDetached = errors.New("HEAD is detached, so that no branch could take commits; the writes are committed once " +
		"HEAD names a branch")
)

// commitLoop commits writes until ctx ends.
func (r *Repo) commitLoop(ctx context.Context) {
	r.work.Lock()
	if _, err := r.mend(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errDetached) {
		r.o.Logger.Warn("git: HEAD is not whole", "error", err)
	}
	r.work.Unlock()
	pause := time.Duration(0)
	if !r.writable.Load() {
		pause = retryFirst
	}
	for {
		var again, index <-chan time.Time
		if pause > 0 {
			again = time.After(pause)
		} else if r.unfinished() || r.Status().IndexError != "" {
			index = time.After(repeatEvery)
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushAtMost)
			defer cancel()
			for r.commitPending(last) != nil && last.Err() == nil && r.writable.Load() {
				time.Sleep(retryFirst)
			}
			return
		case <-r.wakeCommit:
			if r.o.Ack == AckFile {
				select {
				case <-time.After(gather):
				case <-ctx.Done():
				}
			}
		case <-again:
		case <-index:
			if err := r.alignAgain(ctx); err != nil && ctx.Err() == nil {
				r.o.Logger.Debug("git: the index is looked at again later", "error", err)
			}
			continue
		}
		if err := r.commitPending(ctx); err != nil {
			pause = min(max(2*pause, retryFirst), retryMost)
			continue
		}
		pause = 0
	}
}

// commitPending commits all that is pending. An error means that some of it stays.
func (r *Repo) commitPending(ctx context.Context) error {
	r.work.Lock()
	defer r.work.Unlock()
	if !r.writable.Load() {
		turn := func(f func() error) error { return r.files.GitTurn(f) }
		err := r.openForWrites(ctx, 0, turn)
		if err != nil {
			r.commitFails(err)
			return err
		}
		if r.index.lock.TookOver {
			r.index.lock.Release()
		}
	}
	groups := group(r.queue.waiting())
	var failed error
	for _, g := range groups {
		err := r.commitGroup(ctx, g)
		if errors.As(err, new(*plumbing.Damage)) && time.Since(r.mended) > mendEvery {
			if made, merr := r.mend(ctx); made {
				err = r.commitGroup(ctx, g)
			} else {
				r.mended, err = time.Now(), cmp.Or(merr, err)
			}
		}
		failed = errors.Join(failed, err)
		if err != nil && !errors.As(err, new(*waits)) {
			break // the next group would fail, too
		}
	}
	r.commitFails(failed)
	return failed
}

// group divides writes into those of one author each. A write goes into the last group of its author, unless a later
// group changes one of its files: the order of changes to a file stays.
func group(writes []*pendingWrite) (groups [][]*pendingWrite) {
next:
	for _, w := range writes {
		for i, g := range slices.Backward(groups) {
			if sameAuthor(g[0], w) && len(g) < maxGroup {
				groups[i] = append(g, w)
				continue next
			}
			if slices.ContainsFunc(g, func(x *pendingWrite) bool { return sharesFile(x, w) }) {
				break
			}
		}
		groups = append(groups, []*pendingWrite{w})
	}
	return groups
}

func sameAuthor(a, b *pendingWrite) bool {
	return a.Author.Actor == b.Author.Actor && a.Author.Key == b.Author.Key
}

func sharesFile(a, b *pendingWrite) bool {
	for _, f := range a.Files {
		for _, g := range b.Files {
			if f.Path == g.Path {
				return true
			}
		}
	}
	return false
}

// waits is the error for a write that has to wait for a person's commit.
type waits struct {
	path string
	err  error
}

func (e *waits) Error() string {
	if refusal, is := errors.AsType[*catalog.Error](e.err); is && refusal.Code == catalog.CodeReadOnly {
		return "a write is in its file and is not committed: " + refusal.Message
	}
	return fmt.Sprintf("%s: the write is in the file, but its commit waits until the file's earlier edits are "+
		"committed: %v", e.path, e.err)
}

// A head is what HEAD names.
type head struct {
	branch string // full ref
	commit string // "" before the first commit
	tree   string
}

// head reads HEAD; errDetached if it names no branch. The caller holds work.
func (r *Repo) head(ctx context.Context) (h head, err error) {
	text, err := os.ReadFile(filepath.Join(r.git.GitDir, "HEAD"))
	if err != nil {
		return h, err
	}
	branch, isRef := strings.CutPrefix(strings.TrimSpace(string(text)), "ref: ")
	if isRef && branch == "refs/heads/.invalid" { // another ref storage than files
		if branch, err = r.git.Run(ctx, "symbolic-ref", "-q", "HEAD"); err != nil {
			isRef = false
		}
	}
	if !isRef || !strings.HasPrefix(branch, "refs/heads/") {
		r.change(func(s *Status) { s.Branch = "" })
		return h, errDetached
	}
	h.branch = branch
	switch id, _, _, err := r.git.Object(branch); {
	case err != nil: // there is no such branch, or its commit is missing or damaged
		if id, gone := r.git.Run(ctx, "rev-parse", "--quiet", "--verify", branch); gone == nil {
			return h, &plumbing.Damage{Kind: "commit", ID: id, Err: err}
		} else if !errors.Is(err, plumbing.ErrMissing) {
			return h, err
		}
	default:
		c, err := r.git.Commit(id)
		if err != nil {
			return h, err
		}
		h.commit, h.tree = c.ID, c.Tree
	}
	r.change(func(s *Status) { s.Branch, s.Head = strings.TrimPrefix(branch, "refs/heads/"), h.commit })
	return h, nil
}

// commitGroup makes one commit of the writes of one author. A *waits error means that some of them stay pending.
func (r *Repo) commitGroup(ctx context.Context, writes []*pendingWrite) error {
	for range maxRaces {
		err := r.commitOnce(ctx, writes)
		if !errors.Is(err, plumbing.ErrRace) {
			return err
		}
	}
	return plumbing.ErrRace
}

func (r *Repo) commitOnce(ctx context.Context, writes []*pendingWrite) (failed error) {
	end := func(string, error) {}
	made := ""
	defer func() { end(made, failed) }()
	h, err := r.head(ctx)
	if err != nil {
		return err
	}
	s := newScratch(r, h.tree)
	var done []*pendingWrite
	var waiting error
	for _, w := range writes {
		var late *waits
		if err := s.apply(ctx, w, true); errors.As(err, &late) {
			waiting = errors.Join(waiting, err)
			continue
		} else if err != nil {
			return err
		}
		done = append(done, w)
	}
	if len(done) == 0 {
		return waiting
	}
	end = r.stepOf(done, "git.commit")
	changes, err := s.changes(ctx)
	if err != nil {
		return err
	}
	ids := make([]int64, len(done))
	for i, w := range done {
		ids[i] = w.ID
	}
	switch {
	case len(changes) == 0 && len(done) > 1: // their edits cancel each other out, or are committed: each has a commit
		for _, w := range done {
			if err := r.commitGroup(ctx, []*pendingWrite{w}); err != nil {
				return errors.Join(waiting, err)
			}
		}
		return waiting
	case len(changes) == 0: // people have committed our edit together with theirs, or we have
		if made, err = r.commitWith(ctx, h, done[0]); err != nil {
			return err
		}
	default:
		tree, err := r.git.NewTree(h.tree, changes)
		if err != nil {
			return err
		}
		var parents []string
		if h.commit != "" {
			parents = []string{h.commit}
		}
		now := time.Now()
		made, err = r.git.CommitTree(ctx, tree, parents, r.authorOf(done[0], now), message(done))
		if err != nil {
			return err
		}
		record, err := json.Marshal(intent{Commit: made, Writes: ids})
		if err != nil {
			return err
		}
		if err := r.git.Sync(); err != nil {
			return err
		}
		if err := r.o.Ledger.ChangePending(map[int64][]byte{intentID: record}); err != nil {
			return err
		}
		ready := r.makeReadyIndex(ctx, tree, s.old, changes)
		defer r.dropOwnIndex()
		// ---- Up to here only unused objects were added. ----
		err = r.files.GitTurn(func() error {
			return r.index.lock.Under(func() error {
				// The end of the service must not come in between: people's next commit would take our change back.
				ctx := context.WithoutCancel(ctx)
				if err := r.git.MoveRef(ctx, h.branch, made, h.commit, oneLine("fingerpost: "+done[0].Subject, 200)); err != nil {
					return err
				}
				if err := r.alignTo(ctx, ready, tree, s.old, changes); err != nil {
					r.o.Logger.Warn("git: the commit is made, but the index was not brought up to date", "error", err)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		r.change(func(s *Status) { s.Head, s.LastCommit, s.Commits = made, now.UTC(), s.Commits+1 })
	}
	if err := r.git.Sync(); err != nil { // until then the records are needed
		return err
	}
	if err := r.o.Ledger.Committed(writeCommits(done, made), append(ids, intentID)...); err != nil {
		r.o.Logger.Warn("git: the records of committed writes stay", "error", err) // a start finds their commit
	}
	r.queue.committed(done, made, r.o.Push)
	if r.o.Hooks && len(changes) > 0 {
		if _, err := r.git.Run(ctx, "hook", "run", "--ignore-missing", "post-commit"); err != nil {
			r.o.Logger.Warn("git: the hook post-commit has failed", "error", err)
		}
	}
	if r.o.Push {
		wake(r.remote.wake)
	}
	return waiting
}

// commitWith returns the commit that has brought a write's edit into the history, "" if it cannot be told: then HEAD
// had the same before the write, and a person's edit in between was never committed.
func (r *Repo) commitWith(ctx context.Context, h head, w *pendingWrite) (string, error) {
	if h.commit == "" {
		return "", nil
	}
	args := []string{"--literal-pathspecs", "rev-list", "--max-count=1", h.commit, "--"}
	for _, f := range w.Files {
		args = append(args, r.prefix+f.Path)
	}
	id, err := r.git.Run(ctx, args...)
	if err != nil || id == "" {
		return "", err
	}
	c, err := r.git.Commit(id)
	if err != nil {
		return "", err
	}
	if _, _, at := person(c.Committer); at.Before(w.since().Truncate(time.Second)) {
		return "", nil
	}
	return id, nil
}

// writeCommits says for the audit trail which commit has the writes.
func writeCommits(writes []*pendingWrite, commit string) (list []catalog.WriteCommit) {
	if commit == "" {
		return nil
	}
	for _, w := range writes {
		list = append(list, catalog.WriteCommit{RequestID: w.Author.RequestID, Generation: w.Generation, Commit: commit})
	}
	return list
}
