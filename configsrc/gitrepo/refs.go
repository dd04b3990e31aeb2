package gitrepo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// errRace: a ref has another value than it is to be moved from.
var errRace = errors.New("somebody else has committed at the same time")

// ref returns the commit of a ref, "" if there is none. The caller holds work.
func (g *store) ref(name string) (string, error) {
	id, _, _, err := g.object(name)
	if errors.Is(err, errMissing) {
		return "", nil
	}
	return id, err
}

func (g *store) exists(ctx context.Context, ref string) bool {
	_, err := g.run(ctx, "show-ref", "--verify", "--quiet", ref)
	return err == nil
}

func (g *store) isAncestor(ctx context.Context, a, b string) (bool, error) {
	_, err := g.run(ctx, "merge-base", "--is-ancestor", a, b)
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// setRef sets a ref of our own, or removes it.
func (g *store) setRef(ctx context.Context, name, to string) error {
	if to == "" {
		return g.changeRef(ctx, name, "-d", name)
	}
	return g.changeRef(ctx, name, name, to)
}

// moveRef sets a ref if it still has the old value, "" for none; errRace if it has not.
func (g *store) moveRef(ctx context.Context, ref, to, from, why string) error {
	err := g.changeRef(ctx, ref, "-m", why, ref, to, from)
	if err != nil && strings.Contains(err.Error(), "cannot lock ref") && strings.Contains(err.Error(), "but expected") ||
		err != nil && strings.Contains(err.Error(), "reference already exists") {
		return errRace
	}
	return err
}

// changeRef runs update-ref for one ref: what it names is durable before, and the ref is afterwards. git syncs the file
// of a ref (core.fsync), not its folder.
func (g *store) changeRef(ctx context.Context, ref string, args ...string) error {
	if err := g.objects.sync(); err != nil {
		return err
	}
	folder := filepath.Dir(filepath.Join(g.gitDir, filepath.FromSlash(ref)))
	_, missing := os.Lstat(folder)
	if _, err := g.call(ctx, localLimit, g.committer, nil, append([]string{"update-ref", "--no-deref"},
		args...)...); err != nil {
		return err
	}
	for ; strings.HasPrefix(folder, g.gitDir); folder = filepath.Dir(folder) {
		err := syncFolder(folder)
		if errors.Is(err, fs.ErrNotExist) { // git removes empty folders
			continue
		}
		if err != nil || missing == nil {
			return err
		}
	}
	return nil
}
