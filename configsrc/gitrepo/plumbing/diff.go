package plumbing

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

// A remote, or a person who pushes a proposal, can make two commits differ in so much that a diff would fill the memory, or
// hold up every commit while it is read.
const (
	diffEntries = 200_000          // files that may differ
	DiffBytes   = 64 << 20         // git's list of them, and the contents of those in the config folder
	diffLimit   = 20 * time.Second // for git to make the list
)

// ErrTooLarge is the error for two trees that differ in more than the bounds.
var ErrTooLarge = fmt.Errorf("the change is larger than %d files or %d MiB", diffEntries, DiffBytes>>20)

// Diff lists the paths in which two trees differ, with what both have there; no entry: nothing. "" is an empty tree. The
// error is ErrTooLarge for more than the bounds. Trees that are there need no lock.
func (g *Store) Diff(ctx context.Context, from, to string) (old, now map[string]Entry, err error) {
	for _, id := range []*string{&from, &to} {
		if *id == "" {
			if *id, err = g.NewTree("", nil); err != nil {
				return nil, nil, err
			}
		}
	}
	list := limitedBuffer{room: DiffBytes}
	err = g.stream(ctx, diffLimit, nil, nil, &list, "diff-tree", "-r", "-z", "--no-renames", from, to)
	if list.room < 0 {
		return nil, nil, ErrTooLarge
	}
	if err != nil {
		return nil, nil, err
	}
	words := strings.Split(strings.TrimSuffix(list.String(), "\x00"), "\x00")
	if len(words) > 2*diffEntries {
		return nil, nil, ErrTooLarge
	}
	old, now = map[string]Entry{}, map[string]Entry{}
	for i := 0; i+1 < len(words); i += 2 {
		f := strings.Fields(strings.TrimPrefix(words[i], ":"))
		if len(f) != 5 {
			return nil, nil, fmt.Errorf("git diff-tree: unexpected %q", words[i])
		}
		e := func(mode, id string) Entry {
			if mode == "000000" {
				return Entry{}
			}
			return Entry{mode, id}
		}
		old[words[i+1]], now[words[i+1]] = e(f[0], f[2]), e(f[1], f[3])
	}
	return old, now, nil
}

// A limitedBuffer refuses bytes above its limit, which ends the process that writes to it.
type limitedBuffer struct {
	bytes.Buffer
	room int // less than 0: it has refused something
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.room -= len(p); b.room < 0 {
		return 0, ErrTooLarge
	}
	return b.Buffer.Write(p)
}

// SettleTree makes the objects durable in which a tree differs from another one, for git merge-tree, which does not
// sync.
func (g *Store) SettleTree(ctx context.Context, from, to string) error {
	if from == to {
		return nil
	}
	if _, err := g.objects.found(to); err != nil {
		return err
	}
	out, err := g.Call(ctx, LocalLimit, nil, nil, "diff-tree", "-r", "-t", "-z", "--no-renames", from, to)
	if err != nil {
		return err
	}
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i := 0; i+1 < len(words); i += 2 { // and the path
		f := strings.Fields(words[i])
		if len(f) != 5 || f[1] == "000000" || f[1] == ModeSubproj {
			continue
		}
		if _, err := g.objects.found(f[3]); err != nil {
			return err
		}
	}
	return nil
}
