package gitrepo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// intentID is the record of the commit that is about to become the branch's head. After a crash it tells whether the
// writes in it are in the history.
const intentID = 0

type intent struct {
	Commit string
	Writes []int64
}

// maxResults bounds how many writes are kept for Wait.
const maxResults = 10_000

// Begin implements configsrc.Journal.
func (r *Repo) Begin(w *catalog.FileWrite) error {
	r.mu.Lock()
	r.lastID++
	w.ID = r.lastID
	r.mu.Unlock()
	record, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return r.o.Notes.ChangePending(map[int64][]byte{w.ID: record})
}

// End implements configsrc.Journal.
func (r *Repo) End(w *catalog.FileWrite, made bool) {
	if !made {
		if err := r.o.Notes.ChangePending(nil, w.ID); err != nil {
			r.o.Logger.Warn("git: the note of a refused write stays", "error", err) // a start finds that it was not made
		}
		return
	}
	r.mu.Lock()
	r.add(&pendingWrite{FileWrite: *w})
	r.mu.Unlock()
	wake(r.wakeCommit)
}

// add queues a write. The caller holds mu.
func (r *Repo) add(w *pendingWrite) {
	w.made, w.pushed = make(chan struct{}), make(chan struct{})
	r.pending = append(r.pending, w)
	r.results[w.ID] = w
	if r.order = append(r.order, w.ID); len(r.order) > maxResults {
		delete(r.results, r.order[0])
		r.order = r.order[1:]
	}
}

// Wait waits as long as Options.Ack demands, at most until ctx ends, and returns what has become of a write by then.
func (r *Repo) Wait(ctx context.Context, id int64) Result {
	r.mu.Lock()
	w := r.results[id]
	r.mu.Unlock()
	if w == nil {
		return Result{}
	}
	until := map[Ack]chan struct{}{AckCommit: w.made, AckPush: w.pushed}[r.o.Ack]
	if until != nil {
		select {
		case <-until:
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	result := Result{Commit: w.commit, Overruled: w.overrul}
	select {
	case <-w.pushed:
		result.Pushed = w.overrul == ""
	default:
	}
	return result
}

// settled notes that the branch has a commit with the writes.
func (r *Repo) settled(writes []*pendingWrite, commit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range writes {
		w.commit = commit
		close(w.made)
	}
	if r.o.Push {
		r.unpushed = append(r.unpushed, writes...)
	}
	r.pending = slices.DeleteFunc(r.pending, func(w *pendingWrite) bool { return slices.Contains(writes, w) })
}

// Recover takes up the writes of an earlier process: those that were made and are not in the history are queued. Call
// it once, after the first load of the files and before the first write of this process, which would change them.
func (r *Repo) Recover(ctx context.Context, files Files) {
	r.files = files
	r.work.Lock()
	defer r.work.Unlock()
	locked := r.underLock
	if r.tookOver { // people's git stays locked out until the index is right again
		defer r.lock.release()
		locked = func(f func() error) error { return f() }
	}
	_ = r.checkIndex(ctx) // the status says it
	if out, err := r.git.run(ctx, "for-each-ref", "--format=%(refname:lstrip=2)",
		"refs/heads/fingerpost/overruled/"); err == nil {
		r.change(func(s *Status) { s.Overruled = strings.Fields(out) })
	}
	records := r.earlier
	r.earlier = nil
	var drop []int64
	var known []catalog.WriteCommit
	if raw := records[intentID]; raw != nil {
		var made intent
		if json.Unmarshal(raw, &made) == nil && r.inHistory(ctx, made.Commit) {
			drop = made.Writes
			for _, id := range drop {
				var w catalog.FileWrite
				if json.Unmarshal(records[id], &w) == nil {
					known = append(known, catalog.WriteCommit{RequestID: w.Author.RequestID, Commit: made.Commit})
				}
			}
			if err := r.alignAfter(ctx, made.Commit, locked); err != nil {
				r.o.Logger.Warn("git: the index was not brought up to date after a crash", "error", err)
			}
		}
		drop = append(drop, intentID)
	}
	var writes []*catalog.FileWrite
	for id, raw := range records {
		if slices.Contains(drop, id) {
			continue
		}
		w := new(catalog.FileWrite)
		if err := json.Unmarshal(raw, w); err != nil {
			r.o.Logger.Error("git: the note of a write is damaged", "id", id, "error", err)
			continue
		}
		w.ID = id
		writes = append(writes, w)
	}
	slices.SortFunc(writes, func(a, b *catalog.FileWrite) int { return int(a.ID - b.ID) })
	made := r.wereMade(writes)
	r.mu.Lock()
	for _, w := range writes {
		if !made[w.ID] {
			drop = append(drop, w.ID)
			continue
		}
		r.add(&pendingWrite{FileWrite: *w})
	}
	// Writes of this process may have come first.
	slices.SortStableFunc(r.pending, func(a, b *pendingWrite) int { return int(a.ID - b.ID) })
	n := len(r.pending)
	r.mu.Unlock()
	if len(drop) > 0 {
		if err := r.o.Notes.Committed(known, drop...); err != nil {
			r.o.Logger.Warn("git: notes of earlier writes stay", "error", err)
		}
	}
	if n > 0 {
		r.o.Logger.Info("git: writes of an earlier process are committed now", "writes", n)
		wake(r.wakeCommit)
	}
}

// wereMade says which writes are in their files, in id order. It walks back from what is on disk.
func (r *Repo) wereMade(writes []*catalog.FileWrite) map[int64]bool {
	now := map[string][]byte{}
	made := map[int64]bool{}
	root, err := os.OpenRoot(r.git.dir)
	if err != nil {
		r.o.Logger.Error("git: the work tree cannot be read; all writes of an earlier process are taken as made", "error",
			err)
		for _, w := range writes {
			made[w.ID] = true
		}
		return made
	}
	defer root.Close()
	same := func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
	for _, w := range slices.Backward(writes) {
		last := w.Files[len(w.Files)-1] // the file that decides, see configsrc
		for _, f := range w.Files {
			if _, known := now[f.Path]; known {
				continue
			}
			content, err := root.ReadFile(filepath.FromSlash(r.prefix + f.Path))
			if err == nil && content == nil {
				content = []byte{}
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				r.o.Logger.Warn("git: a file cannot be read", "path", f.Path, "error", err)
			}
			now[f.Path] = content
		}
		switch is := now[last.Path]; {
		case same(is, last.After):
			made[w.ID] = true
		case same(is, last.Before):
		default: // a person has changed the file since
			made[w.ID] = r.o.Answered != nil && r.o.Answered(w)
		}
		if made[w.ID] {
			for _, f := range w.Files {
				now[f.Path] = f.Before
			}
		}
	}
	return made
}

// Has reports whether HEAD has a commit, by its full id. The files of a pulled one are live by then, and so is an API
// write: its commit comes later.
func (r *Repo) Has(ctx context.Context, commit string) (bool, error) {
	r.work.Lock() // a pull holds it until its files are live
	defer r.work.Unlock()
	_, err := r.git.run(ctx, "merge-base", "--is-ancestor", commit, "HEAD")
	if code := exitCode(err); code == 1 || code == 128 { // 128: there is no such commit
		return false, nil
	}
	return err == nil, err
}

// inHistory reports whether HEAD, or any branch, has a commit.
func (r *Repo) inHistory(ctx context.Context, commit string) bool {
	if _, err := r.git.run(ctx, "merge-base", "--is-ancestor", commit, "HEAD"); err == nil {
		return true
	}
	out, err := r.git.run(ctx, "for-each-ref", "--count=1", "--contains="+commit, "refs/heads", "refs/remotes")
	return err == nil && out != ""
}
