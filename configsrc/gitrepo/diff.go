package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A remote, or whoever pushes a proposal, can make two commits differ in so much that a diff would fill the memory, or
// hold up every commit while it is read.
const (
	diffEntries = 200_000          // files that may differ
	diffBytes   = 64 << 20         // git's list of them, and the contents of those in the config folder
	diffLimit   = 20 * time.Second // for git to make the list
)

var errTooLarge = fmt.Errorf("the change is larger than %d files or %d MiB", diffEntries, diffBytes>>20)

// diff lists the paths in which two trees differ, with what both have there; no entry: nothing. "" is an empty tree. The
// error is errTooLarge for more than the bounds. The caller holds work.
func (r *Repo) diff(ctx context.Context, from, to string) (old, now map[string]entry, err error) {
	for _, id := range []*string{&from, &to} {
		if *id == "" {
			if *id, err = r.newTree("", nil); err != nil {
				return nil, nil, err
			}
		}
	}
	return r.git.diff(ctx, from, to)
}

// diff is Repo.diff for trees that are there; it needs no lock.
func (c *command) diff(ctx context.Context, from, to string) (old, now map[string]entry, err error) {
	list := limitedBuffer{room: diffBytes}
	err = c.stream(ctx, diffLimit, nil, nil, &list, "diff-tree", "-r", "-z", "--no-renames", from, to)
	if list.room < 0 {
		return nil, nil, errTooLarge
	}
	if err != nil {
		return nil, nil, err
	}
	words := strings.Split(strings.TrimSuffix(list.String(), "\x00"), "\x00")
	if len(words) > 2*diffEntries {
		return nil, nil, errTooLarge
	}
	old, now = map[string]entry{}, map[string]entry{}
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

// A limitedBuffer refuses what it has no room for, which ends the process that writes to it.
type limitedBuffer struct {
	bytes.Buffer
	room int // less than 0: it has refused something
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.room -= len(p); b.room < 0 {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

// bounded returns a *conflict if the upstream differs from the head in more than the bounds. It reads without work, and
// a commit of the upstream that was refused is not looked at again.
func (r *Repo) bounded(ctx context.Context, u *upstream) error {
	from, to, commit, err := r.treesOf(ctx, u)
	if err != nil || to == "" {
		return err
	}
	if commit != r.tooLarge {
		if _, _, err = r.git.diff(ctx, from, to); !errors.Is(err, errTooLarge) {
			return err
		}
		r.tooLarge = commit
	}
	return &conflict{fmt.Sprintf("%.12s of %s is not taken: %v; take it by \"git pull\" in the clone, "+
		"or push a smaller one", commit, u.track, errTooLarge)}
}

// treesOf returns the trees of the head and of the upstream, whose commit it names; "" if it has none.
func (r *Repo) treesOf(ctx context.Context, u *upstream) (head, theirs, commit string, err error) {
	r.work.Lock()
	defer r.work.Unlock()
	h, err := r.head(ctx)
	if err != nil {
		return "", "", "", err
	}
	if commit, err = r.ref(u.track); err != nil || commit == "" {
		return "", "", "", err
	}
	c, err := r.commit(commit)
	if err != nil {
		return "", "", "", err
	}
	if head = h.tree; head == "" {
		head, err = r.newTree("", nil)
	}
	return head, c.tree, commit, err
}
