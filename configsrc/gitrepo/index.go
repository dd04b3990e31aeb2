package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ownIndex is the copy of people's index that is edited before it takes the index's place.
const ownIndex = "fingerpost-index"

// errLocked: another git holds the lock.
var errLocked = errors.New("git's index.lock exists: another git is at work, or one was killed and its lock has to be removed")

// underLock runs f while this service holds git's lock on the index.
func (r *Repo) underLock(f func() error) error {
	// A link makes the lock together with its content: a process that is killed leaves no lock that is not known as ours.
	lock, mark := filepath.Join(r.gitDir, "index.lock"), filepath.Join(r.gitDir, "fingerpost-mark")
	if err := os.WriteFile(mark, []byte(lockMark), 0o666); err != nil {
		return err
	}
	if err := os.Link(mark, lock); errors.Is(err, fs.ErrExist) {
		return errLocked
	} else if err != nil {
		return err
	}
	return errors.Join(f(), os.Remove(lock))
}

// align brings people's index up to date for the changed paths, where its entry was the one of the commit before: what a
// person has staged stays. The caller holds git's lock.
func (r *Repo) align(ctx context.Context, old, changes map[string]entry) error {
	args := []string{"--literal-pathspecs", "ls-files", "-s", "-z", "--"}
	for path := range changes {
		args = append(args, path)
	}
	out, err := r.git.call(ctx, localLimit, nil, nil, args...)
	if err != nil {
		return err
	}
	staged := map[string]entry{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		words, path, _ := strings.Cut(line, "\t")
		if f := strings.Fields(words); len(f) == 3 {
			if staged[path] = (entry{f[0], f[1]}); f[2] != "0" {
				staged[path] = entry{"unmerged", f[1]}
			}
		}
	}
	var in bytes.Buffer
	for path, e := range changes {
		switch {
		case staged[path] != old[path]:
		case e.id == "":
			fmt.Fprintf(&in, "0 %s\t%s\x00", strings.Repeat("0", len(old[path].id)), path)
		default:
			fmt.Fprintf(&in, "%s %s\t%s\x00", e.mode, e.id, path)
		}
	}
	if in.Len() == 0 {
		return nil
	}
	return r.withOwnIndex(func(env []string) error {
		_, err := r.git.call(ctx, localLimit, env, in.Bytes(), "update-index", "-z", "--index-info")
		return err
	})
}

// alignAfter is align for a commit after which the process was killed.
func (r *Repo) alignAfter(ctx context.Context, id string, locked func(func() error) error) error {
	c, err := r.commit(id)
	if err != nil {
		return err
	}
	h, err := r.head(ctx)
	if err != nil || h.commit != id {
		return err
	}
	var before string
	if len(c.parents) > 0 {
		p, err := r.commit(c.parents[0])
		if err != nil {
			return err
		}
		before = p.tree
	}
	old, changes, err := r.diff(ctx, before, c.tree)
	if err != nil || len(changes) == 0 {
		return err
	}
	return locked(func() error { return r.align(ctx, old, changes) })
}

// diff returns the entries that differ between two trees, by path in the repository. "" is the empty tree.
func (r *Repo) diff(ctx context.Context, from, to string) (old, now map[string]entry, err error) {
	old, now = map[string]entry{}, map[string]entry{}
	for _, id := range []*string{&from, &to} {
		if *id == "" {
			if *id, err = r.newTree(ctx, "", nil); err != nil {
				return nil, nil, err
			}
		}
	}
	out, err := r.git.call(ctx, localLimit, nil, nil, "diff-tree", "-r", "-z", "--no-renames", from, to)
	if err != nil {
		return nil, nil, err
	}
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i := 0; i+1 < len(words); i += 2 {
		f := strings.Fields(strings.TrimPrefix(words[i], ":"))
		if len(f) != 5 {
			return nil, nil, fmt.Errorf("git diff-tree: unexpected %q", words[i])
		}
		e := func(mode, id string) entry {
			if mode == "000000" {
				return entry{}
			}
			return entry{mode, id}
		}
		old[words[i+1]], now[words[i+1]] = e(f[0], f[2]), e(f[1], f[3])
	}
	return old, now, nil
}
