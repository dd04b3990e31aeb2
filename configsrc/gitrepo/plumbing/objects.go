package plumbing

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

// ErrMissing: the repository has no such object or ref.
var ErrMissing = errors.New("no such object")

// A Damage is an object that the repository names and does not have, or not whole.
type Damage struct {
	Kind, ID string
	Err      error
}

func (e *Damage) Error() string {
	return fmt.Sprintf("the %s %s cannot be read: %v; \"git fsck\" lists what is missing, "+
		"and another clone may have it: \"git fetch --refetch\" gets it",
		e.Kind, e.ID, e.Err)
}

func (e *Damage) Unwrap() error { return e.Err }

// Object reads an object by its id or by the full name of a ref.
func (g *Store) Object(name string) (id, kind string, content []byte, err error) {
	err = g.reader.ask([]byte(name+"\n"), func(out *bufio.Reader) error {
		line, err := out.ReadString('\n')
		if err != nil {
			return err
		}
		words := strings.Fields(line)
		if len(words) != 3 {
			return ErrMissing
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

// An Entry is one entry of a tree. The zero entry stands for none.
type Entry struct{ Mode, ID string }

// Modes of entries.
const (
	ModeFile    = "100644"
	ModeFolder  = "40000"
	ModeLink    = "120000"
	ModeSubproj = "160000"
)

// A TreeEntry is an entry with its name.
type TreeEntry struct {
	Name string
	Entry
}

// Tree reads a tree; "" is the empty one.
func (g *Store) Tree(id string) (list []TreeEntry, err error) {
	if id == "" {
		return nil, nil
	}
	_, kind, b, err := g.Object(id)
	if err == nil && kind != "tree" {
		err = fmt.Errorf("%s is a %s", id, kind)
	}
	if err != nil {
		return nil, &Damage{"tree", id, err}
	}
	raw := len(id) / 2
	for len(b) > 0 {
		space, zero := bytes.IndexByte(b, ' '), bytes.IndexByte(b, 0)
		if space < 0 || zero < space || len(b) < zero+1+raw {
			return nil, fmt.Errorf("read tree %s: malformed", id)
		}
		list = append(list, TreeEntry{string(b[space+1 : zero]), Entry{string(b[:space]),
			hex.EncodeToString(b[zero+1 : zero+1+raw])}})
		b = b[zero+1+raw:]
	}
	return list, nil
}

// Find returns the entry of a path in a tree. read is Store.Tree, or one that remembers.
func Find(read func(id string) ([]TreeEntry, error), tree, path string) (Entry, error) {
	at := Entry{ModeFolder, tree}
	for name := range strings.SplitSeq(path, "/") {
		if at.Mode != ModeFolder {
			return Entry{}, nil
		}
		list, err := read(at.ID)
		if err != nil {
			return Entry{}, err
		}
		at = Entry{}
		for _, e := range list {
			if e.Name == name {
				at = e.Entry
			}
		}
		if at.ID == "" {
			return Entry{}, nil
		}
	}
	return at, nil
}

// Blob reads the content of a file's entry, nil for none.
func (g *Store) Blob(e Entry) ([]byte, error) {
	if e.ID == "" {
		return nil, nil
	}
	if e.Mode == ModeFolder || e.Mode == ModeLink || e.Mode == ModeSubproj {
		return nil, fmt.Errorf("it is no file in the commit, but mode %s", e.Mode)
	}
	_, _, b, err := g.Object(e.ID)
	if err != nil {
		err = &Damage{"file", e.ID, err}
	}
	return b, err
}

// Text is Blob for a list of changes: a link and a submodule have none.
func (g *Store) Text(e Entry) ([]byte, error) {
	if e.Mode == ModeLink || e.Mode == ModeSubproj {
		return nil, nil
	}
	return g.Blob(e)
}

// writeTree makes the tree that has changes, by path, in the place of entries of tree. An entry without id removes. It
// returns "" for an empty tree.
func (g *Store) writeTree(tree string, changes map[string]Entry) (string, error) {
	list, err := g.Tree(tree)
	if err != nil {
		return "", err
	}
	below := map[string]map[string]Entry{}
	for path, e := range changes {
		name, rest, _ := strings.Cut(path, "/")
		if below[name] == nil {
			below[name] = map[string]Entry{}
		}
		below[name][rest] = e
	}
	var now []TreeEntry
	change := func(name string, was Entry, inside map[string]Entry) error {
		if e, leaf := inside[""]; leaf {
			if e.ID != "" {
				now = append(now, TreeEntry{name, e})
			}
			return nil
		}
		if was.Mode != ModeFolder && was.ID != "" {
			return fmt.Errorf("%s is no folder in the commit, but mode %s", name, was.Mode)
		}
		id, err := g.writeTree(was.ID, inside)
		if err == nil && id != "" {
			now = append(now, TreeEntry{name, Entry{ModeFolder, id}})
		}
		return err
	}
	for _, e := range list {
		inside, changed := below[e.Name]
		delete(below, e.Name)
		if !changed {
			now = append(now, e)
		} else if err := change(e.Name, e.Entry, inside); err != nil {
			return "", err
		}
	}
	for name, inside := range below {
		if err := change(name, Entry{}, inside); err != nil {
			return "", err
		}
	}
	if len(now) == 0 {
		return "", nil
	}
	content, err := EncodeTree(now)
	if err != nil {
		return "", err
	}
	return g.StoreTree(content)
}

// NewTree is writeTree for a commit, where a tree may be empty.
func (g *Store) NewTree(tree string, changes map[string]Entry) (string, error) {
	id, err := g.writeTree(tree, changes)
	if err == nil && id == "" {
		id, err = g.StoreTree(nil)
	}
	return id, err
}

// EncodeTree returns a tree as git stores it.
func EncodeTree(list []TreeEntry) ([]byte, error) {
	sortedAs := func(e TreeEntry) string {
		if e.Mode == ModeFolder {
			return e.Name + "/"
		}
		return e.Name
	}
	slices.SortFunc(list, func(a, b TreeEntry) int { return strings.Compare(sortedAs(a), sortedAs(b)) })
	var out []byte
	for _, e := range list {
		id, err := hex.DecodeString(e.ID)
		if err != nil {
			return nil, fmt.Errorf("tree entry %s: %w", e.Name, err)
		}
		out = append(append(append(out, e.Mode+" "+e.Name...), 0), id...)
	}
	return out, nil
}

// treeFile is the file from which git takes a tree.
func (g *Store) treeFile() string { return filepath.Join(g.GitDir, "fingerpost-tree") }

// StoreTree stores a tree by hash-object: mktree of git 2.39 does not sync.
func (g *Store) StoreTree(content []byte) (id string, err error) {
	id = g.ID("tree", content)
	if found, err := g.objects.found(id); found || err != nil {
		return id, err
	}
	g.storing.Lock()
	defer g.storing.Unlock()
	// The helper takes names of files only, and a process a tree would cost more than the commit. The file stays: a change
	// in git's folder looks like a git at work (configsrc/gitguard.go).
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

// WriteBlobs stores the contents of files, and returns their ids by path. Each is synced; syncs that wait at the same
// time share the file system's work.
func (g *Store) WriteBlobs(ctx context.Context, contents map[string][]byte) (ids map[string]string, err error) {
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

// writeBlob stores a file's content as it is, whatever the repository's attributes say of the path: people who may
// push them must not change our bytes. Mostly the work tree has the same content, and the helper reads it there, which saves
// a process for each file. Its object is taken only if the id is that of the content: edits by people lead to a process
// of their own.
func (g *Store) writeBlob(ctx context.Context, h *helper, path string, content []byte) (id string, err error) {
	want := g.ID("blob", content)
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
	out, err := g.Call(ctx, LocalLimit, nil, content, "hash-object", "-w", "--no-filters", "--stdin")
	if err != nil {
		return "", err
	}
	if id = strings.TrimSpace(string(out)); id != want {
		return "", fmt.Errorf("git hash-object: the content of %s became %q, not %s", path, id, want)
	}
	g.objects.made(id)
	return id, nil
}

// A Commit is a commit object.
type Commit struct {
	ID, Tree, Message string
	Parents           []string
	Author, Committer string // the lines, with the times
}

// Commit reads a commit by its id or by the full name of a ref.
func (g *Store) Commit(id string) (*Commit, error) {
	got, kind, b, err := g.Object(id)
	if err == nil && kind != "commit" {
		err = fmt.Errorf("%s is a %s", id, kind)
	}
	if err != nil {
		return nil, &Damage{"commit", id, err}
	}
	c := &Commit{ID: got}
	head, message, _ := strings.Cut(string(b), "\n\n")
	c.Message = message
	for line := range strings.SplitSeq(head, "\n") {
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "tree":
			c.Tree = rest
		case "parent":
			c.Parents = append(c.Parents, rest)
		case "author":
			c.Author = rest
		case "committer":
			c.Committer = rest
		}
	}
	return c, nil
}

// CommitTree makes a commit object.
func (g *Store) CommitTree(ctx context.Context, tree string, parents, author []string, message string) (id string,
	err error) {
	args := []string{}
	if g.SignKey != "" {
		args = append(args, "-c", "gpg.format=ssh", "-c", "user.signingKey="+g.SignKey)
	}
	args = append(args, "commit-tree")
	if g.SignKey != "" {
		args = append(args, "-S")
	}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := g.Call(ctx, LocalLimit, append(author, g.Committer...), []byte(message), append(args, tree)...)
	id = strings.TrimSpace(string(out))
	if err == nil {
		g.objects.made(id)
	}
	return id, err
}

// Trailers returns the values of a trailer in the message. They are in its last paragraph, which is not its first.
func (c *Commit) Trailers(name string) (values []string) {
	text := strings.TrimRight(c.Message, "\n")
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
