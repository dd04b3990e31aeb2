package gitrepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fingerpost/configsrc/gitrepo/plumbing"
)

// movingRef names the commit to which the work tree is being brought. After a crash in between, some files are those of
// this commit already.
const movingRef = "refs/fingerpost/moving"

// moveTo brings work tree, index and branch from the head to another commit. It refuses, and changes nothing, if a file
// that would change has edits that are not committed. base is the commit of the upstream in it, "" if that is
// unchanged. turn is Files.GitTurn, or decides first. The caller holds work.
func (r *Repo) moveTo(ctx context.Context, h head, to, base string, turn func(f func() error) error) error {
	c, err := r.git.Commit(to)
	if err != nil {
		return err
	}
	from := h.tree
	if from == "" {
		if from, err = r.git.NewTree("", nil); err != nil {
			return err
		}
	}
	old, changes, err := r.git.Diff(ctx, from, c.Tree)
	if err != nil {
		return err
	}
	if err := r.refuseLinks(changes); err != nil {
		return err
	}
	if err := r.checkIndex(ctx); err != nil {
		return err
	}
	r.notePulled(ctx, h.commit, to, changes)
	err = turn(func() error {
		return r.index.lock.Under(func() error { return r.moveUnderLock(ctx, h, from, c, base, old, changes) })
	})
	if err != nil {
		return err
	}
	r.change(func(s *Status) { s.Head, s.Pulls = to, s.Pulls+1 })
	if err := r.files.Reload(ctx); err != nil && ctx.Err() == nil {
		r.o.Logger.Warn("git: the pulled files", "error", err)
	}
	return nil
}

// refuseLinks returns a *conflict for changes by which something below the config folder becomes a link or a submodule,
// or the folder itself, or one above it, becomes anything but a folder: file() and writes would lead out of the clone.
func (r *Repo) refuseLinks(changes map[string]plumbing.Entry) error {
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		mode := changes[path].Mode
		switch {
		case mode == "":
		case strings.HasPrefix(r.prefix, path+"/"):
			return &conflict{fmt.Sprintf("%s is no folder any more in the commit, "+
				"and the config folder is in it; make it a folder again, without a link", path)}
		case strings.HasPrefix(path, r.prefix) && (mode == plumbing.ModeLink || mode == plumbing.ModeSubproj):
			return &conflict{fmt.Sprintf("%s is a link or a submodule in the commit; only files are taken below the config "+
				"folder", path)}
		}
	}
	return nil
}

func (r *Repo) moveUnderLock(ctx context.Context, h head, from string, c *plumbing.Commit, base string,
	old, changes map[string]plumbing.Entry) (err error) {
	moving, moved := false, false
	err = r.withOwnIndex(func(env []string) error {
		// The entries that we have brought up to date have no times in the index.
		if _, err := r.git.Call(ctx, plumbing.LocalLimit, env, nil, "update-index", "-q", "--refresh"); err != nil &&
			plumbing.ExitCode(err) != 1 {
			return err
		}
		if err := r.git.SetRef(ctx, movingRef, c.ID); err != nil {
			return err
		}
		moving = true
		if _, err := r.git.Call(ctx, plumbing.LocalLimit, env, nil, "read-tree", "-m", "-u", from, c.Tree); err != nil {
			return fmt.Errorf("the pull waits for edits that are not committed: %w", err)
		}
		err := r.syncFiles(changes)
		if err == nil {
			err = r.git.MoveRef(ctx, h.branch, c.ID, h.commit, "fingerpost: pull")
		}
		if err != nil {
			if _, undo := r.git.Call(ctx, plumbing.LocalLimit, env, nil, "read-tree", "-m", "-u", c.Tree, from); undo != nil {
				err = errors.Join(err, undo)
			}
			return err
		}
		moved = true
		return nil
	})
	if moved {
		// ---- The branch has moved. From here on nothing is answered as a failure. ----
		if err != nil {
			r.o.Logger.Warn("git: the branch has moved, but the index has not followed; it is tried again", "error", err)
			r.index.noteMove(old, changes)
			wake(r.wakeCommit) // whose loop then tries again
		}
		ctx, err = context.WithoutCancel(ctx), nil
		if base != "" {
			if err := r.setBase(ctx, h.branch, base); err != nil { // the next fetch sets it
				r.o.Logger.Warn("git: the commit of the upstream was not noted", "error", err)
			}
		}
	}
	if moving { // only now, when the index has its place
		if err := r.git.SetRef(ctx, movingRef, ""); err != nil { // the next move replaces it, and a start removes it
			r.o.Logger.Warn("git: a ref of a move that has ended stays", "ref", movingRef, "error", err)
		}
	}
	return err
}

// withOwnIndex runs f with the variables for a copy of people's index, which then takes the index's place, also after
// an error. The caller holds git's lock.
func (r *Repo) withOwnIndex(f func(env []string) error) error {
	defer r.dropOwnIndex()
	err := r.editOwnIndex(f)
	if _, missing := os.Lstat(r.ownIndex()); missing == nil {
		err = errors.Join(err, r.replaceIndex())
	}
	return err
}

func (r *Repo) ownIndex() string { return filepath.Join(r.git.GitDir, scratchFolder, "index") }

// makeScratch makes the folder of our copy of the index. Where that fails, so does the copy.
func (r *Repo) makeScratch() { _ = os.MkdirAll(filepath.Dir(r.ownIndex()), 0o700) }

// editOwnIndex makes our copy of people's index, and edits it with f.
func (r *Repo) editOwnIndex(f func(env []string) error) error {
	own := r.ownIndex()
	r.makeScratch() // a person may have removed it
	r.dropOwnIndex()
	_ = os.Remove(own + ".lock")
	if err := os.Link(filepath.Join(r.git.GitDir, "index"), own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f([]string{"GIT_INDEX_FILE=" + own})
}

func (r *Repo) dropOwnIndex() { _ = os.Remove(r.ownIndex()) }

// replaceIndex puts our copy of people's index in the index's place. git has not synced it.
func (r *Repo) replaceIndex() error {
	own := r.ownIndex()
	if err := plumbing.SyncFolder(own); err != nil {
		return err
	}
	if err := os.Rename(own, filepath.Join(r.git.GitDir, "index")); err != nil {
		return err
	}
	return plumbing.SyncFolder(r.git.GitDir)
}

// finishMove takes up a moveTo that a crash has cut off before the branch moved: files and index become those of the
// branch again. The remote may have moved on, and the next merge could not tell what the move has written from edits of
// a person. First, files that are those of the move's commit, and those that a power cut has emptied, get the entry of
// the move's commit in the index. It runs before the files are read.
func (r *Repo) finishMove(ctx context.Context) error {
	to, err := r.git.Ref(movingRef)
	if err != nil || to == "" {
		return err
	}
	h, err := r.head(ctx)
	if err != nil {
		return err
	}
	c, err := r.git.Commit(to)
	if err != nil {
		return err
	}
	if h.commit != to && h.commit != "" {
		if moved, err := r.git.IsAncestor(ctx, to, h.commit); err != nil {
			return err
		} else if moved { // and has gone on since
			return r.git.SetRef(ctx, movingRef, "")
		}
	}
	if h.commit == to { // the branch has moved, the new index perhaps not
		err := r.index.lock.Under(func() error {
			if _, missing := os.Lstat(r.ownIndex()); missing != nil {
				return nil //nolint:nilerr // nothing to put in place
			}
			return r.replaceIndex()
		})
		if err != nil {
			return err
		}
		return r.git.SetRef(ctx, movingRef, "")
	}
	_, changes, err := r.git.Diff(ctx, h.tree, c.Tree)
	if err != nil {
		return err
	}
	in, err := r.movedFiles(ctx, changes)
	if err != nil {
		return err
	}
	tree := h.tree
	if tree == "" {
		if tree, err = r.git.NewTree("", nil); err != nil {
			return err
		}
	}
	err = r.index.lock.Under(func() error {
		return r.withOwnIndex(func(env []string) error {
			if _, err := r.git.Call(ctx, plumbing.LocalLimit, env, in, "update-index", "-z", "--index-info"); err != nil {
				return err
			}
			if _, err := r.git.Call(ctx, plumbing.LocalLimit, env, nil, "update-index", "-q", "--refresh"); err != nil &&
				plumbing.ExitCode(err) != 1 {
				return err
			}
			_, err := r.git.Call(ctx, plumbing.LocalLimit, env, nil, "read-tree", "-m", "-u", c.Tree, tree)
			return err
		})
	})
	return errors.Join(err, r.git.SetRef(ctx, movingRef, ""))
}

// movedFiles returns the entries of the files that are those of the changes, as update-index takes them. Files that a
// power cut has emptied are removed, and count as moved.
func (r *Repo) movedFiles(ctx context.Context, changes map[string]plumbing.Entry) ([]byte, error) {
	root, err := os.OpenRoot(r.git.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var in bytes.Buffer
	empty := r.git.ID("blob", nil)
	for path, e := range changes {
		name := filepath.FromSlash(path)
		content, err := root.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && e.ID == "":
			fmt.Fprintf(&in, "0 %s\t%s\x00", strings.Repeat("0", len(empty)), path)
			continue
		case err != nil || e.ID == "":
			continue
		case len(content) == 0 && e.ID != empty:
			if err := root.Remove(name); err != nil {
				return nil, err
			}
		default:
			out, err := r.git.Call(ctx, plumbing.LocalLimit, nil, content, "hash-object", "--stdin", "--path="+path)
			if err != nil || strings.TrimSpace(string(out)) != e.ID {
				continue
			}
		}
		fmt.Fprintf(&in, "%s %s\t%s\x00", e.Mode, e.ID, path)
	}
	return in.Bytes(), nil
}

// syncFiles makes the changed files of the config folder durable, which git has written into the work tree.
func (r *Repo) syncFiles(changes map[string]plumbing.Entry) error {
	root, err := os.OpenRoot(r.git.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	folders := map[string]bool{}
	for path, e := range changes {
		if !strings.HasPrefix(path, r.prefix) {
			continue
		}
		for dir := parent(path); len(dir) >= len(r.prefix)-1 && !folders[dir]; dir = parent(dir) {
			folders[dir] = true
			if dir == "" {
				break
			}
		}
		if e.ID == "" {
			continue
		}
		if err := syncIn(root, path); err != nil {
			return err
		}
	}
	for dir := range folders {
		if err := syncIn(root, cmp.Or(dir, ".")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func syncIn(root *os.Root, path string) error {
	f, err := root.Open(filepath.FromSlash(path))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
