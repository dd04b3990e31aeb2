package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// errMissing: the repository has no such object or ref.
var errMissing = errors.New("no such object")

// A damage is an object that the repository names and does not have, or not whole.
type damage struct {
	kind, id string
	err      error
}

func (e *damage) Error() string {
	return fmt.Sprintf("the %s %s cannot be read: %v; \"git fsck\" lists what is missing, "+
		"and another clone may have it: \"git fetch --refetch\" gets it",
		e.kind, e.id, e.err)
}

func (e *damage) Unwrap() error { return e.err }

// object reads an object by its id or by the full name of a ref.
func (g *store) object(name string) (id, kind string, content []byte, err error) {
	err = g.reader.ask([]byte(name+"\n"), func(out *bufio.Reader) error {
		line, err := out.ReadString('\n')
		if err != nil {
			return err
		}
		words := strings.Fields(line)
		if len(words) != 3 {
			return errMissing
		}
		size, err := strconv.Atoi(words[2])
		if err != nil {
			return fmt.Errorf("unexpected answer %q", line)
		}
		id, kind, content = words[0], words[1], make([]byte, size+1)
		_, err = io.ReadFull(out, content)
		content = content[:size]
		return err
	})
	return id, kind, content, err
}

// An entry is one entry of a tree. The zero entry stands for none.
type entry struct{ mode, id string }

const (
	modeFile    = "100644"
	modeFolder  = "40000"
	modeLink    = "120000"
	modeSubproj = "160000"
)

// A treeEntry is an entry with its name.
type treeEntry struct {
	name string
	entry
}

// tree reads a tree; "" is the empty one.
func (g *store) tree(id string) (list []treeEntry, err error) {
	if id == "" {
		return nil, nil
	}
	_, kind, b, err := g.object(id)
	if err == nil && kind != "tree" {
		err = fmt.Errorf("%s is a %s", id, kind)
	}
	if err != nil {
		return nil, &damage{"tree", id, err}
	}
	raw := len(id) / 2
	for len(b) > 0 {
		space, zero := bytes.IndexByte(b, ' '), bytes.IndexByte(b, 0)
		if space < 0 || zero < space || len(b) < zero+1+raw {
			return nil, fmt.Errorf("read tree %s: malformed", id)
		}
		list = append(list, treeEntry{string(b[space+1 : zero]), entry{string(b[:space]),
			hex.EncodeToString(b[zero+1 : zero+1+raw])}})
		b = b[zero+1+raw:]
	}
	return list, nil
}

// find returns the entry of a path in a tree. read is Repo.tree, or one that remembers.
func find(read func(id string) ([]treeEntry, error), tree, path string) (entry, error) {
	at := entry{modeFolder, tree}
	for name := range strings.SplitSeq(path, "/") {
		if at.mode != modeFolder {
			return entry{}, nil
		}
		list, err := read(at.id)
		if err != nil {
			return entry{}, err
		}
		at = entry{}
		for _, e := range list {
			if e.name == name {
				at = e.entry
			}
		}
		if at.id == "" {
			return entry{}, nil
		}
	}
	return at, nil
}

// blob reads the content of a file's entry, nil for none.
func (g *store) blob(e entry) ([]byte, error) {
	if e.id == "" {
		return nil, nil
	}
	if e.mode == modeFolder || e.mode == modeLink || e.mode == modeSubproj {
		return nil, fmt.Errorf("it is no file in the commit, but mode %s", e.mode)
	}
	_, _, b, err := g.object(e.id)
	if err != nil {
		err = &damage{"file", e.id, err}
	}
	return b, err
}

// text is blob for a list of changes: a link and a submodule have none.
func (g *store) text(e entry) ([]byte, error) {
	if e.mode == modeLink || e.mode == modeSubproj {
		return nil, nil
	}
	return g.blob(e)
}

// writeTree makes the tree that has changes, by path, in the place of entries of tree. An entry without id removes. It
// returns "" for an empty tree.
func (g *store) writeTree(tree string, changes map[string]entry) (string, error) {
	list, err := g.tree(tree)
	if err != nil {
		return "", err
	}
	below := map[string]map[string]entry{}
	for path, e := range changes {
		name, rest, _ := strings.Cut(path, "/")
		if below[name] == nil {
			below[name] = map[string]entry{}
		}
		below[name][rest] = e
	}
	var now []treeEntry
	change := func(name string, was entry, inside map[string]entry) error {
		if e, leaf := inside[""]; leaf {
			if e.id != "" {
				now = append(now, treeEntry{name, e})
			}
			return nil
		}
		if was.mode != modeFolder && was.id != "" {
			return fmt.Errorf("%s is no folder in the commit, but mode %s", name, was.mode)
		}
		id, err := g.writeTree(was.id, inside)
		if err == nil && id != "" {
			now = append(now, treeEntry{name, entry{modeFolder, id}})
		}
		return err
	}
	for _, e := range list {
		inside, changed := below[e.name]
		delete(below, e.name)
		if !changed {
			now = append(now, e)
		} else if err := change(e.name, e.entry, inside); err != nil {
			return "", err
		}
	}
	for name, inside := range below {
		if err := change(name, entry{}, inside); err != nil {
			return "", err
		}
	}
	if len(now) == 0 {
		return "", nil
	}
	content, err := encodeTree(now)
	if err != nil {
		return "", err
	}
	return g.storeTree(content)
}

// newTree is writeTree for a commit, where a tree may be empty.
func (g *store) newTree(tree string, changes map[string]entry) (string, error) {
	id, err := g.writeTree(tree, changes)
	if err == nil && id == "" {
		id, err = g.storeTree(nil)
	}
	return id, err
}

// encodeTree returns a tree as git stores it.
func encodeTree(list []treeEntry) ([]byte, error) {
	sortedAs := func(e treeEntry) string {
		if e.mode == modeFolder {
			return e.name + "/"
		}
		return e.name
	}
	slices.SortFunc(list, func(a, b treeEntry) int { return strings.Compare(sortedAs(a), sortedAs(b)) })
	var out []byte
	for _, e := range list {
		id, err := hex.DecodeString(e.id)
		if err != nil {
			return nil, fmt.Errorf("tree entry %s: %w", e.name, err)
		}
		out = append(append(append(out, e.mode+" "+e.name...), 0), id...)
	}
	return out, nil
}

// treeFile is the file from which git takes a tree.
func (g *store) treeFile() string { return filepath.Join(g.gitDir, "fingerpost-tree") }

// storeTree stores a tree by hash-object: mktree of git 2.39 does not sync.
func (g *store) storeTree(content []byte) (id string, err error) {
	id = g.objectID("tree", content)
	if found, err := g.objects.found(id); found || err != nil {
		return id, err
	}
	// The helper takes names of files only, and a process a tree would cost more than the commit. The file stays: a change
	// in git's folder looks like a git at work (configsrc/gitguard).
	if err := os.WriteFile(g.treeFile(), content, 0o600); err != nil {
		return "", err
	}
	var made string
	err = g.trees.ask([]byte(g.treeFile()+"\n"), func(out *bufio.Reader) error {
		made, err = out.ReadString('\n')
		return err
	})
	if made = strings.TrimSpace(made); err == nil && made != id {
		err = fmt.Errorf("git hash-object: the tree %s became %q", id, made)
	}
	g.objects.made(id)
	return id, err
}

// writeBlobs stores the contents of files, and returns their ids by path. Each is synced; syncs that wait at the same
// time share the file system's work.
func (g *store) writeBlobs(ctx context.Context, contents map[string][]byte) (ids map[string]string, err error) {
	ids = make(map[string]string, len(contents))
	paths := make(chan string)
	var mu sync.Mutex // guards ids and err
	var writing sync.WaitGroup
	for i := range min(len(g.blobs), len(contents)) {
		writing.Go(func() {
			for path := range paths {
				id, failed := g.writeBlob(ctx, &g.blobs[i], path, contents[path])
				mu.Lock()
				ids[path], err = id, errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	for path := range contents {
		paths <- path
	}
	close(paths)
	writing.Wait()
	return ids, err
}

// writeBlob stores a file's content as it is, whatever the repository's attributes say of the path: whoever may push
// them must not change our bytes. Mostly the work tree has the same content, and the helper reads it there, which saves
// a process for each file. Its object is taken only if the id is that of the content: edits by people lead to a process
// of their own.
func (g *store) writeBlob(ctx context.Context, h *helper, path string, content []byte) (id string, err error) {
	want := g.objectID("blob", content)
	if found, err := g.objects.found(want); found || err != nil {
		return want, err
	}
	if !strings.ContainsAny(path, "\n\r\"") {
		err := h.ask([]byte(path+"\n"), func(out *bufio.Reader) error {
			line, err := out.ReadString('\n')
			id = strings.TrimSpace(line)
			return err
		})
		if err == nil && id == want {
			g.objects.made(id)
			return id, nil
		}
	}
	out, err := g.call(ctx, localLimit, nil, content, "hash-object", "-w", "--no-filters", "--stdin")
	if err != nil {
		return "", err
	}
	if id = strings.TrimSpace(string(out)); id != want {
		return "", fmt.Errorf("git hash-object: the content of %s became %q, not %s", path, id, want)
	}
	g.objects.made(id)
	return id, nil
}

// A commit is a commit object.
type commit struct {
	id, tree, message string
	parents           []string
	author, committer string // the lines, with the times
}

func (g *store) commit(id string) (*commit, error) {
	got, kind, b, err := g.object(id)
	if err == nil && kind != "commit" {
		err = fmt.Errorf("%s is a %s", id, kind)
	}
	if err != nil {
		return nil, &damage{"commit", id, err}
	}
	c := &commit{id: got}
	head, message, _ := strings.Cut(string(b), "\n\n")
	c.message = message
	for line := range strings.SplitSeq(head, "\n") {
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "tree":
			c.tree = rest
		case "parent":
			c.parents = append(c.parents, rest)
		case "author":
			c.author = rest
		case "committer":
			c.committer = rest
		}
	}
	return c, nil
}

// commitTree makes a commit object.
func (g *store) commitTree(ctx context.Context, tree string, parents, author []string, message string) (id string,
	err error) {
	args := []string{}
	if g.signKey != "" {
		args = append(args, "-c", "gpg.format=ssh", "-c", "user.signingKey="+g.signKey)
	}
	args = append(args, "commit-tree")
	if g.signKey != "" {
		args = append(args, "-S")
	}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := g.call(ctx, localLimit, append(author, g.committer...), []byte(message), append(args, tree)...)
	id = strings.TrimSpace(string(out))
	if err == nil {
		g.objects.made(id)
	}
	return id, err
}

// trailers returns the values of a trailer in the message. They are in its last paragraph, which is not its first.
func (c *commit) trailers(name string) (values []string) {
	text := strings.TrimRight(c.message, "\n")
	at := strings.LastIndex(text, "\n\n")
	if at < 0 {
		return nil
	}
	for line := range strings.SplitSeq(text[at+2:], "\n") {
		if value, found := strings.CutPrefix(line, name+": "); found {
			values = append(values, value)
		}
	}
	return values
}
