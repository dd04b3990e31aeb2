package plumbing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrRace: a ref has another value than it is to be moved from.
var ErrRace = errors.New("somebody else has committed at the same time")

// Ref returns the commit of a ref, "" if there is none.
func (g *Store) Ref(name string) (string, error) {
	id, _, _, err := g.Object(name)
	if errors.Is(err, ErrMissing) {
		return "", nil
	}
	return id, err
}

// Exists reports whether there is a ref of the name. It may be called from any goroutine.
func (g *Store) Exists(ctx context.Context, ref string) bool {
	_, err := g.Run(ctx, "show-ref", "--verify", "--quiet", ref)
	return err == nil
}

// IsAncestor reports whether the commit a is in the history of b. It may be called from any goroutine.
func (g *Store) IsAncestor(ctx context.Context, a, b string) (bool, error) {
	_, err := g.Run(ctx, "merge-base", "--is-ancestor", a, b)
	if ExitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// SetRef sets a ref of our own, or removes it.
func (g *Store) SetRef(ctx context.Context, name, to string) error {
	if to == "" {
		return g.ChangeRef(ctx, name, "-d", name)
	}
	return g.ChangeRef(ctx, name, name, to)
}

// MoveRef sets a ref if it still has the old value, "" for none; ErrRace if it has not.
func (g *Store) MoveRef(ctx context.Context, ref, to, from, why string) error {
	err := g.ChangeRef(ctx, ref, "-m", why, ref, to, from)
	if err != nil && ExitCode(err) < 0 { // it was killed, perhaps after the ref had its new value
		if is, rerr := g.Ref(ref); rerr == nil && is == to {
			return nil
		}
	}
	if err != nil && strings.Contains(err.Error(), "cannot lock ref") && strings.Contains(err.Error(), "but expected") ||
		err != nil && strings.Contains(err.Error(), "reference already exists") {
		return ErrRace
	}
	return err
}

// ChangeRef runs update-ref for one ref: what it names is durable before. An error means that the ref was not changed.
// git syncs the file of a ref (core.fsync), not its folder; if that fails, Sync and the next ChangeRef do it, and fail
// while they cannot.
func (g *Store) ChangeRef(ctx context.Context, ref string, args ...string) error {
	if err := g.objects.sync(); err != nil {
		return err
	}
	folder := filepath.Dir(filepath.Join(g.GitDir, filepath.FromSlash(ref)))
	_, missing := os.Lstat(folder)
	end, err := g.locks.begin(locksOf(ref)...)
	if err != nil {
		return fmt.Errorf("note the locks of %s: %w", ref, err)
	}
	_, err = g.Call(ctx, LocalLimit, g.Committer, nil, append([]string{"update-ref", "--no-deref"}, args...)...)
	if end(err); err != nil {
		return err
	}
	for ; strings.HasPrefix(folder, g.GitDir); folder = filepath.Dir(folder) {
		err := SyncFolder(folder)
		if errors.Is(err, fs.ErrNotExist) { // git removes empty folders
			continue
		}
		if err != nil {
			g.objects.noteFolder(folder)
		}
		if missing == nil {
			break
		}
	}
	return nil
}
