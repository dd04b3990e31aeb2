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

	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/resolver/catalog"
)

// intentID is the record of the commit that is about to become the branch's head. After a crash it tells whether the
// writes in it are in the history.
const intentID = 0

type intent struct {
	Commit string
	Writes []int64
}

// Begin implements configsrc.Journal.
func (r *Repo) Begin(w *catalog.FileWrite) error {
	if r.o.Ack != AckFile && !r.writable.Load() {
		return unavailable(errors.New(r.Status().CommitError))
	}
	if err := r.refuseFilters(context.Background(), w); err != nil {
		return err
	}
	w.ID = r.queue.nextID()
	record, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return r.o.Ledger.ChangePending(map[int64][]byte{w.ID: record})
}

// End implements configsrc.Journal.
func (r *Repo) End(w *catalog.FileWrite, made bool) {
	if !made {
		if err := r.o.Ledger.ChangePending(nil, w.ID); err != nil {
			r.o.Logger.Warn("git: the record of a refused write stays", "error", err) // a start finds that it was not made
		}
		return
	}
	r.queue.add(w)
	wake(r.wakeCommit)
}

// Wait waits as long as Options.Ack demands, at most until ctx ends, and returns what has become of a write by then.
func (r *Repo) Wait(ctx context.Context, id int64) Result {
	w := r.queue.write(id)
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
	return r.queue.result(w)
}

// Recover takes up the writes of an earlier process: those that were made and are not in the history are queued. Call
// it once, after the first load of the files and before the first write of this process, which would change them.
func (r *Repo) Recover(ctx context.Context, files Files) {
	r.files = files
	r.work.Lock()
	defer r.work.Unlock()
	if r.index.lock.TookOver {
		defer r.index.lock.Release()
	}
	_ = r.checkIndex(ctx) // the status says it
	if out, err := r.git.Run(ctx, "for-each-ref", "--format=%(refname:lstrip=2)",
		"refs/heads/fingerpost/overruled/"); err == nil {
		r.change(func(s *Status) { s.Overruled = strings.Fields(out) })
	}
	records := r.earlier
	r.earlier = nil
	r.mu.Lock()
	r.cutOff = nil
	r.mu.Unlock()
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
			if err := r.alignAfter(ctx, made.Commit); err != nil {
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
			r.o.Logger.Error("git: the record of a write is damaged", "id", id, "error", err)
			continue
		}
		w.ID = id
		writes = append(writes, w)
	}
	slices.SortFunc(writes, func(a, b *catalog.FileWrite) int { return int(a.ID - b.ID) })
	made := r.wereMade(writes)
	for _, w := range writes {
		if !made[w.ID] {
			drop = append(drop, w.ID)
		}
	}
	writes = slices.DeleteFunc(writes, func(w *catalog.FileWrite) bool { return !made[w.ID] })
	r.queue.addEarlier(writes)
	if len(drop) > 0 {
		if err := r.o.Ledger.Committed(known, drop...); err != nil {
			r.o.Logger.Warn("git: records of earlier writes stay", "error", err)
		}
	}
	if len(writes) > 0 {
		r.o.Logger.Info("git: writes of an earlier process are committed now", "writes", len(writes))
		wake(r.wakeCommit)
	}
}

// wereMade says which writes are in their files, in id order. It walks back from what is on disk.
func (r *Repo) wereMade(writes []*catalog.FileWrite) map[int64]bool {
	now := map[string][]byte{}
	made := map[int64]bool{}
	root, err := os.OpenRoot(r.git.Dir)
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
	_, err := r.git.Run(ctx, "merge-base", "--is-ancestor", commit, "HEAD")
	if code := plumbing.ExitCode(err); code == 1 || code == 128 { // 128: the commit does not exist
		return false, nil
	}
	return err == nil, err
}

// inHistory reports whether HEAD, or any branch, has a commit.
func (r *Repo) inHistory(ctx context.Context, commit string) bool {
	if _, err := r.git.Run(ctx, "merge-base", "--is-ancestor", commit, "HEAD"); err == nil {
		return true
	}
	out, err := r.git.Run(ctx, "for-each-ref", "--count=1", "--contains="+commit, "refs/heads", "refs/remotes")
	return err == nil && out != ""
}
