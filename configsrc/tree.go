package configsrc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"fingerpost/resolver/catalog"
)

// MaxFileBytes is the largest config file (contract files.md 1).
const MaxFileBytes = 1 << 20

// maxBodyFileBytes bounds a file that file() names; the template's own limit, in catalog, is tighter.
const maxBodyFileBytes = 1 << 20

// racy is how long after a write the file system may still give an unchanged time to a further one.
const racy = 50 * time.Millisecond

// isConfigName reports whether a file name is one of config: .hcl, not hidden, not an editor's leftover.
func isConfigName(name string) bool {
	return strings.HasSuffix(name, ".hcl") && !ignoredName(name)
}

// ignoredName reports names that are never config nor folders with config.
func ignoredName(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") ||
		strings.HasSuffix(name, ".tmp") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
}

var errKeepsChanging = errors.New("keeps changing while it is read")

// A tree is the config folder as one look sees it: opened anew each time, since a link above it may have been swapped.
type tree struct {
	dir      string
	root     *os.Root
	strays   []string        // temporary files that the last list has seen
	unlisted map[string]bool // folders that it has not listed, with files in them to which links lead
	// known, if set, returns a path that is kept anyway, "" for one that is not. It must not keep the one that it is given.
	known func(at []byte) string
	at    []byte // scratch
	// dirents is the memory into which openFolder reads.
	dirents []byte
}

func openTree(dir string) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &tree{dir: dir, root: root, unlisted: map[string]bool{}}, nil
}

// lateTree is openTree for whoever may need nothing but read: the folder is opened when the first file is.
func lateTree(dir string) *tree { return &tree{dir: dir} }

func (t *tree) Close() {
	if t.root != nil {
		t.root.Close()
	}
}

// An entry is what stands at a path: stat data, or why it cannot be config.
type entry struct {
	path  string
	size  int64
	mtime time.Time
	inode uint64
	err   error // set: it cannot be read as a config file
	// folder: it is a sub-folder that cannot be listed. Nothing below it must be taken for deleted.
	folder bool
}

// list walks the tree and calls yield for every config file and for every sub-folder that cannot be listed, and folder,
// if it is not nil, for every folder before it is listed, the root ("") included.
func (t *tree) list(folder func(dir string), yield func(entry)) error {
	t.strays = nil
	clear(t.unlisted)
	return t.listBelow("", folder, yield)
}

func (t *tree) listBelow(dir string, folder func(dir string), yield func(entry)) error {
	if folder != nil {
		folder(dir)
	}
	names, err := t.readFolder(dir)
	switch {
	case err == nil:
		defer names.close()
	case dir == "":
		return fmt.Errorf("the config folder cannot be listed: %w", cause(err))
	case errors.Is(err, fs.ErrNotExist):
		return nil // gone since its parent was read
	default:
		yield(entry{path: dir, err: fmt.Errorf("cannot be listed: %w", cause(err)), folder: true})
		return nil
	}
	var folders []string
	for name, kind, ok := names.next(); ok; name, kind, ok = names.next() {
		switch {
		case ignoredName(name):
			if isTemp(name) {
				t.strays = append(t.strays, path.Join(dir, name))
			}
		case isConfigName(name):
			if e, ok := t.listed(names, dir, name); ok {
				yield(e)
			}
		case kind == fs.ModeDir || kind == fs.ModeIrregular && t.isFolder(path.Join(dir, name)):
			folders = append(folders, path.Join(dir, name))
		}
	}
	for _, sub := range folders {
		if err := t.listBelow(sub, folder, yield); err != nil {
			return err
		}
	}
	return nil
}

// listed is the entry of a config name in a folder; false for one that is gone since the folder was read.
func (t *tree) listed(in *folder, dir, name string) (e entry, ok bool) {
	e.path = t.join(dir, name)
	if in.regular(name, &e) {
		e.limit()
		return e, true
	}
	info, err := t.root.Lstat(filepath.FromSlash(e.path))
	if errors.Is(err, fs.ErrNotExist) {
		return e, false
	}
	return t.entryOf(e.path, info, err), true
}

// join is path.Join of a folder and a name in it. What known has as well is not made anew.
func (t *tree) join(dir, name string) string {
	t.at = t.at[:0]
	if dir != "" {
		t.at = append(append(t.at, dir...), '/')
	}
	t.at = append(t.at, name...)
	if t.known != nil {
		if at := t.known(t.at); at != "" {
			return at
		}
	}
	return string(t.at)
}

func (t *tree) isFolder(at string) bool {
	info, err := t.root.Lstat(filepath.FromSlash(at))
	return err == nil && info.IsDir()
}

func (t *tree) readFolder(dir string) (*folder, error) {
	f, err := t.root.Open(rootName(dir))
	if err != nil {
		return nil, err
	}
	return t.openFolder(f)
}

// stat looks at one path. ok is false when nothing is there; isDir tells a folder that may hold config.
func (t *tree) stat(at string) (e entry, isDir, ok bool) {
	info, err := t.root.Lstat(filepath.FromSlash(at))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return entry{}, false, false
	}
	if err == nil && info.IsDir() && !isConfigName(path.Base(at)) {
		return entry{}, true, true
	}
	return t.entryOf(at, info, err), false, true
}

// entryOf judges one directory entry. A link is followed, inside the folder only.
func (t *tree) entryOf(at string, info fs.FileInfo, err error) entry {
	e := entry{path: at}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		t.noteLink(at)
		if info, err = t.root.Stat(filepath.FromSlash(at)); err != nil {
			e.err = linkError(err)
			return e
		}
	}
	if err != nil {
		e.err = fmt.Errorf("cannot be read: %w", cause(err))
		return e
	}
	if e.err = regular(info); e.err != nil {
		return e
	}
	e.size, e.mtime, e.inode = info.Size(), info.ModTime(), inode(info)
	e.limit()
	return e
}

// limit makes an error of a size that is too large.
func (e *entry) limit() {
	if e.size > MaxFileBytes {
		e.err = fmt.Errorf("is %d bytes long; a config file has at most 1 MiB (%d bytes): give each project a file of its own", e.size, MaxFileBytes)
	}
}

// noteLink notes where a link leads when that is a folder which list passes over, such as Kubernetes' ..data.
func (t *tree) noteLink(at string) {
	to, err := t.root.Readlink(filepath.FromSlash(at))
	if err != nil {
		return
	}
	dir := path.Join(path.Dir(at), path.Dir(filepath.ToSlash(to)))
	if fs.ValidPath(dir) && slices.ContainsFunc(strings.Split(dir, "/"), ignoredName) && dir != "." {
		t.unlisted[dir] = true
	}
}

// temps returns the temporary files of writes, living or cut off, that stand where the last list has been, or where
// links lead that it has seen.
func (t *tree) temps() []string {
	for dir := range t.unlisted {
		names, err := t.readFolder(dir)
		if err != nil {
			continue // what list said about the link says it
		}
		for name, _, ok := names.next(); ok; name, _, ok = names.next() {
			if isTemp(name) {
				t.strays = append(t.strays, path.Join(dir, name))
			}
		}
		names.close()
	}
	clear(t.unlisted)
	return t.strays
}

func linkError(err error) error {
	switch {
	case errors.Is(err, syscall.ELOOP):
		return errors.New("is a symbolic link that leads back to itself; point it at a file in the folder")
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("is a symbolic link to nothing; remove it, or put back the file that it names")
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot be read: %w", cause(err))
	}
	return errors.New("is a symbolic link that leads out of the config folder; put the file itself into the folder")
}

func regular(info fs.FileInfo) error {
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return errors.New("is a folder; a name that ends in .hcl must be a regular file")
	case m&fs.ModeNamedPipe != 0:
		return errors.New("is a FIFO; a config file must be a regular file")
	case m&fs.ModeSocket != 0:
		return errors.New("is a socket; a config file must be a regular file")
	}
	return errors.New("is a device or special file; a config file must be a regular file")
}

// read returns a file's bytes and the stamp that belongs to them: when size, time or inode move while it is read, it is
// read again. A file that does not hold still for five tries is an error, and so a matter of the next look.
func (t *tree) read(at string, limit int64) ([]byte, catalog.Stamp, error) {
	if t.root == nil {
		root, err := os.OpenRoot(t.dir)
		if err != nil {
			return nil, catalog.Stamp{}, err
		}
		t.root = root
	}
	for range 5 {
		b, stamp, moved, err := t.readOnce(at, limit)
		if err != nil || !moved {
			return b, stamp, err
		}
	}
	return nil, catalog.Stamp{}, errKeepsChanging
}

func (t *tree) readOnce(at string, limit int64) (b []byte, stamp catalog.Stamp, moved bool, err error) {
	// Without O_NONBLOCK a FIFO put in the file's place would block the open for ever.
	f, err := t.root.OpenFile(filepath.FromSlash(at), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, stamp, false, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, stamp, false, err
	}
	if err := regular(before); err != nil {
		return nil, stamp, false, err
	}
	if before.Size() > limit {
		return nil, stamp, false, fmt.Errorf("is %d bytes long, %d are allowed", before.Size(), limit)
	}
	b = make([]byte, 0, before.Size()+1)
	if b, err = readAll(io.LimitReader(f, limit+1), b); err != nil {
		return nil, stamp, false, err
	}
	after, err := t.root.Stat(filepath.FromSlash(at))
	if err != nil {
		return nil, stamp, false, err
	}
	stamp = stampOf(after, b)
	same := before.Size() == after.Size() && before.ModTime().Equal(after.ModTime()) && inode(before) == stamp.Inode
	return b, stamp, !same || int64(len(b)) != stamp.Size, nil
}

// stampOf is the stamp of a file that is like this and has these bytes.
func stampOf(info fs.FileInfo, content []byte) catalog.Stamp {
	return catalog.Stamp{Size: info.Size(), ModTime: info.ModTime(), Inode: inode(info), Hash: digest(content)}
}

// readAll is io.ReadAll into a buffer that was made large enough.
func readAll(r io.Reader, b []byte) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// fresh reports a stamp so young that a further write might not show in it.
func fresh(s catalog.Stamp, now time.Time) bool { return now.Sub(s.ModTime) < racy }

func (e entry) sameStat(s catalog.Stamp) bool {
	return e.size == s.Size && e.inode == s.Inode && e.mtime.Equal(s.ModTime)
}

func rootName(dir string) string {
	if dir == "" {
		return "."
	}
	return filepath.FromSlash(dir)
}

// cause strips the path that os puts into its errors: messages name it already.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
