package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fingerpost/configsrc/gitrepo/plumbing"
)

// mendEvery is the pause between two looks of mend through HEAD's tree, if the first has not helped.
const mendEvery = time.Minute

// A mending makes objects of HEAD's tree again that are missing or cut off: folders from people's index, and files from
// the work tree, where these still are what HEAD names. Everything is synced before it is named, so this is for disks
// that lose what was synced, and for repositories from before.
type mending struct {
	r     *Repo
	trees map[string][]byte // contents by id, as people's index has them; nil: not read yet
	blobs map[string]string // paths by id
	made  int
}

// mend reports whether it has made an object again. The caller holds work.
func (r *Repo) mend(ctx context.Context) (bool, error) {
	h, err := r.head(ctx)
	if err != nil || h.commit == "" {
		return false, err
	}
	m := &mending{r: r, blobs: map[string]string{}}
	if err := m.folder(ctx, h.tree, ""); err != nil {
		return m.made > 0, err
	}
	err = m.files(ctx)
	if m.made > 0 {
		r.o.Logger.Warn("git: objects of HEAD were missing or damaged, and were made again from the index and the work tree",
			"objects", m.made)
	}
	return m.made > 0, errors.Join(err, r.git.Sync())
}

// folder makes a tree again, and those below it, and notes the files.
func (m *mending) folder(ctx context.Context, id, at string) error {
	list, err := m.r.git.Tree(id)
	if err != nil {
		if m.trees == nil {
			if rerr := m.readIndex(ctx); rerr != nil {
				return errors.Join(err, rerr)
			}
		}
		content, known := m.trees[id]
		if !known {
			return err
		}
		if _, err := m.r.git.StoreTree(content); err != nil {
			return err
		}
		m.made++
		if list, err = m.r.git.Tree(id); err != nil {
			return err
		}
	}
	for _, e := range list {
		name := path.Join(at, e.Name)
		switch e.Mode {
		case plumbing.ModeFolder:
			if err := m.folder(ctx, e.ID, name); err != nil {
				return err
			}
		case plumbing.ModeLink, plumbing.ModeSubproj:
		default:
			m.blobs[e.ID] = name
		}
	}
	return nil
}

// readIndex makes the trees that people's index stands for.
func (m *mending) readIndex(ctx context.Context) error {
	out, err := m.r.git.Call(ctx, plumbing.LocalLimit, nil, nil, "ls-files", "-s", "-z", "--full-name", ":/")
	if err != nil {
		return err
	}
	folders := map[string][]plumbing.TreeEntry{"": nil}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		words, name, _ := strings.Cut(line, "\t")
		if f := strings.Fields(words); len(f) == 3 {
			for dir := parent(name); dir != "" && folders[dir] == nil; dir = parent(dir) {
				folders[dir] = []plumbing.TreeEntry{}
			}
			folders[parent(name)] = append(folders[parent(name)], treeEntry(name, f[0], f[1]))
		}
	}
	m.trees = map[string][]byte{}
	for _, dir := range slices.Backward(slices.Sorted(maps.Keys(folders))) { // a folder comes after those below it
		content, err := plumbing.EncodeTree(folders[dir])
		if err != nil {
			return err
		}
		id := m.r.git.ID("tree", content)
		m.trees[id] = content
		if dir != "" {
			folders[parent(dir)] = append(folders[parent(dir)], treeEntry(dir, plumbing.ModeFolder, id))
		}
	}
	return nil
}

func treeEntry(name, mode, id string) plumbing.TreeEntry {
	return plumbing.TreeEntry{Name: path.Base(name), Entry: plumbing.Entry{Mode: mode, ID: id}}
}

// files makes the files again that folder has noted.
func (m *mending) files(ctx context.Context) error {
	ids := strings.Join(slices.Collect(maps.Keys(m.blobs)), "\n")
	out, err := m.r.git.Call(ctx, plumbing.LocalLimit, nil, []byte(ids), "cat-file", "--batch-check", "--buffer")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(m.r.git.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for line := range strings.Lines(string(out)) {
		id, missing := strings.CutSuffix(strings.TrimSpace(line), " missing")
		if !missing {
			continue
		}
		name := m.blobs[id]
		versions := m.r.versions(name)
		if b, err := root.ReadFile(filepath.FromSlash(name)); err == nil {
			versions = append(versions, b)
		}
		made := ""
		for _, content := range versions {
			if m.r.git.ID("blob", content) != id {
				continue
			}
			if _, err = m.r.git.WriteBlobs(ctx, map[string][]byte{name: content}); err == nil {
				made = id
			}
			break
		}
		if made != id {
			return &plumbing.Damage{Kind: "file", ID: id,
				Err: cmp.Or(err, fmt.Errorf("%s in the work tree is another version", name))}
		}
		m.made++
	}
	return nil
}

// versions returns the contents that a file had before and after the writes without a commit.
func (r *Repo) versions(name string) (list [][]byte) {
	for _, w := range r.queue.waiting() {
		for _, f := range w.Files {
			if r.prefix+f.Path == name {
				list = append(list, f.Before, f.After)
			}
		}
	}
	return list
}

// parent returns the folder of a path in the repository, "" for its top.
func parent(name string) string {
	if dir := path.Dir(name); dir != "." {
		return dir
	}
	return ""
}
