package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

// MaxFileBytes is the largest config file (configsrc/README.md, Language).
const MaxFileBytes = 1 << 20

// IsConfigName reports whether a file name is a config file's: .hcl, not hidden, not an editor's temporary file.
func IsConfigName(name string) bool {
	return strings.HasSuffix(name, ".hcl") && !IgnoredName(name)
}

// IsConfigPath is IsConfigName for the last part of a path below the folder.
func IsConfigPath(at string) bool { return IsConfigName(path.Base(at)) }

// IgnoredName reports names that are never config files or folders with config files.
func IgnoredName(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") ||
		strings.HasSuffix(name, ".tmp") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
}

// A Tree is the config folder in one look, which closes its root. Each look opens it again, because a link above it may
// have been replaced.
type Tree struct {
	dir       string
	root      *os.Root
	leftovers []string        // temporary files found by the last list
	unlisted  map[string]bool // folders that were not listed, with files that links point to
	places    map[string]catalog.Stamp
}

// FolderStamp returns the stamp of the folder in which a path is missing: the lowest of those above it that is there. It
// changes when something comes into the folder or goes.
func (t *Tree) FolderStamp(at string) catalog.Stamp {
	for dir := path.Dir(at); ; dir = path.Dir(dir) {
		stamp, known := t.places[dir]
		if !known {
			if info, err := t.root.Stat(filepath.FromSlash(dir)); err == nil {
				stamp = StatOf(info)
			}
			if t.places == nil {
				t.places = map[string]catalog.Stamp{}
			}
			t.places[dir] = stamp
		}
		if stamp != (catalog.Stamp{}) || dir == "." {
			return stamp
		}
	}
}

// Open opens a folder, with links in its path followed.
func Open(dir string) (*Tree, error) { return Clone{}.OpenTree(dir) }

// OpenTree opens the folder that is named so.
func (c Clone) OpenTree(named string) (*Tree, error) {
	root, err := c.Open(named)
	if err != nil {
		return nil, err
	}
	return &Tree{dir: c.Dir(named), root: root, unlisted: map[string]bool{}}, nil
}

// Close closes the folder.
func (t *Tree) Close() { t.root.Close() }

// StatFile is stat with links followed.
func (t *Tree) StatFile(at string) (info fs.FileInfo, err error) {
	err = t.followLinks(at, func(name string) error {
		info, err = t.root.Stat(name)
		return err
	})
	return info, err
}

// ErrLeadsOut is why a path cannot be followed.
var ErrLeadsOut = errors.New("leads out of the folder; put the file itself into the folder")

// followLinks calls f with the name of a path. An os.Root rejects each absolute link as leading out; if f fails for
// that reason, followLinks calls it once more with the path's name without links. The os.Root keeps f inside even if
// links change in between.
func (t *Tree) followLinks(at string, f func(name string) error) error {
	name := filepath.FromSlash(at)
	err := f(name)
	if err == nil || !escapes(err) || !filepath.IsLocal(name) {
		return err
	}
	root, rerr := filepath.EvalSymlinks(t.dir)
	if rerr != nil {
		return rerr
	}
	real, rerr := filepath.EvalSymlinks(filepath.Join(root, name))
	switch {
	case errors.Is(rerr, fs.ErrNotExist), errors.Is(rerr, fs.ErrPermission):
		return rerr
	case rerr != nil:
		return syscall.ELOOP // links that point to each other
	}
	if name, rerr = filepath.Rel(root, real); rerr != nil || !filepath.IsLocal(name) {
		return ErrLeadsOut
	}
	if err = f(name); err != nil && escapes(err) { // a link again, created since then
		return ErrLeadsOut
	}
	return err
}

// escapes reports the one error of an os.Root that is not a system error.
func escapes(err error) bool {
	var system syscall.Errno
	return !errors.As(err, &system) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err,
		fs.ErrClosed)
}

// An Entry is what is at a path: stat data, or the reason why it cannot be config.
type Entry struct {
	Path string
	Stat catalog.Stamp // without the hash
	Err  error         // set: it cannot be read as a config file
	// Folder: it is a sub-folder that cannot be listed. Nothing below it may be treated as deleted.
	Folder bool
}

// List walks the tree and calls yield for every config file and for every sub-folder that cannot be listed. If folder
// is not nil, it is called for every folder before it is listed, the root ("") included.
func (t *Tree) List(folder func(dir string), yield func(Entry)) error {
	t.leftovers = nil
	clear(t.unlisted)
	return t.ListBelow("", folder, yield)
}

// ListBelow is List for the folder dir and what is below it.
func (t *Tree) ListBelow(dir string, folder func(dir string), yield func(Entry)) error {
	if folder != nil {
		folder(dir)
	}
	in, names, err := t.readFolder(dir)
	switch {
	case err == nil:
		defer in.Close()
	case dir == "":
		return fmt.Errorf("the config folder cannot be listed: %w", atomicfile.Cause(err))
	case errors.Is(err, fs.ErrNotExist):
		return nil // removed since its parent was read
	default:
		yield(Entry{Path: dir, Err: fmt.Errorf("cannot be listed: %w", atomicfile.Cause(err)), Folder: true})
		return nil
	}
	var folders []string
	for _, one := range names {
		name := one.Name()
		at := path.Join(dir, name)
		switch {
		case IgnoredName(name):
			if atomicfile.IsTemp(name) {
				t.leftovers = append(t.leftovers, at)
			}
		case IsConfigName(name):
			// otherwise it was removed since its folder was read
			if info, err := in.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
				yield(t.entryOf(at, info, err))
			}
		case one.IsDir():
			folders = append(folders, at)
		}
	}
	for _, sub := range folders {
		if err := t.ListBelow(sub, folder, yield); err != nil {
			return err
		}
	}
	return nil
}

// readFolder reads all names in a folder at once, so that they are from one moment. The caller closes in, which is the
// folder.
func (t *Tree) readFolder(dir string) (in *os.Root, names []fs.DirEntry, err error) {
	if in, err = t.root.OpenRoot(rootName(dir)); err != nil {
		return nil, nil, err
	}
	f, err := in.Open(".")
	if err == nil {
		names, err = f.ReadDir(-1)
		f.Close()
	}
	if err != nil {
		in.Close()
		return nil, nil, err
	}
	return in, names, nil
}

// Stat examines one path. ok is false when nothing is there; isDir reports a folder that may hold config.
func (t *Tree) Stat(at string) (e Entry, isDir, ok bool) {
	info, err := t.root.Lstat(filepath.FromSlash(at))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Entry{}, false, false
	}
	if err == nil && info.IsDir() && !IsConfigName(path.Base(at)) {
		return Entry{}, true, true
	}
	return t.entryOf(at, info, err), false, true
}

// entryOf classifies one directory entry. A link is followed, inside the folder only.
func (t *Tree) entryOf(at string, info fs.FileInfo, err error) Entry {
	e := Entry{Path: at}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		t.noteLink(at)
		if info, err = t.StatFile(at); err != nil {
			e.Err = linkError(err)
			return e
		}
	}
	if err != nil {
		e.Err = fmt.Errorf("cannot be read: %w", atomicfile.Cause(err))
		return e
	}
	if e.Err = regular(info); e.Err != nil {
		return e
	}
	e.Stat = StatOf(info)
	if e.Stat.Size > MaxFileBytes {
		e.Err = fmt.Errorf("is %d bytes long; a config file has at most 1 MiB (%d bytes): give each project a file of its "+
			"own", e.Stat.Size, MaxFileBytes)
	}
	return e
}

// noteLink records the target of a link if it is a folder that list skips, such as Kubernetes' ..data.
func (t *Tree) noteLink(at string) {
	to, err := t.root.Readlink(filepath.FromSlash(at))
	if err != nil {
		return
	}
	if filepath.IsAbs(to) { // by any name of the folder
		root, err := filepath.EvalSymlinks(t.dir)
		if err != nil {
			return
		}
		if to, err = filepath.EvalSymlinks(to); err != nil {
			return
		}
		if to, err = filepath.Rel(root, to); err != nil {
			return
		}
		at = "" // to is relative to the folder itself now
	}
	dir := path.Join(path.Dir(at), path.Dir(filepath.ToSlash(to)))
	if fs.ValidPath(dir) && slices.ContainsFunc(strings.Split(dir, "/"), IgnoredName) && dir != "." {
		t.unlisted[dir] = true
	}
}

// Temps returns the temporary files of running or interrupted writes in the folders that the last list has visited, or
// that links it has seen point to.
func (t *Tree) Temps() []string {
	for dir := range t.unlisted {
		in, names, err := t.readFolder(dir)
		if err != nil {
			continue // list has reported the link
		}
		for _, one := range names {
			if atomicfile.IsTemp(one.Name()) {
				t.leftovers = append(t.leftovers, path.Join(dir, one.Name()))
			}
		}
		in.Close()
	}
	clear(t.unlisted)
	return t.leftovers
}

func linkError(err error) error {
	switch {
	case errors.Is(err, syscall.ELOOP):
		return errors.New("is a symbolic link that leads back to itself; point it at a file in the folder")
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("is a symbolic link to nothing; remove it, or put back the file that it names")
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot be read: %w", atomicfile.Cause(err))
	}
	return errors.New("is a symbolic link that leads out of the config folder; put the file itself into the folder")
}

func rootName(dir string) string {
	if dir == "" {
		return "."
	}
	return filepath.FromSlash(dir)
}
