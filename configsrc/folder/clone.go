package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fingerpost/configsrc/atomicfile"
)

// A Clone is where a config folder is in the work tree of a git repository. Everyone who may push to the repository
// decides what is below its top. Therefore the folder is opened from the top down, and through no link: a link in its
// place, or in that of a folder above it, would let file() read the machine and let writes leave the clone. The zero
// Clone is none: links are followed.
type Clone struct {
	top   string // all links resolved
	below string // path of the config folder below it, "." for the top itself
}

// FindClone returns the Clone of a config folder, and an error if there is a link, or no folder, below the top.
func FindClone(dir string) (Clone, error) {
	named, err := filepath.Abs(dir)
	if err != nil {
		return Clone{}, err
	}
	real, err := filepath.EvalSymlinks(named)
	if err != nil {
		return Clone{}, err
	}
	for _, path := range []string{named, real} { // a link from outside may lead into the clone
		top, found := GitTop(path)
		if !found {
			continue
		}
		c := Clone{}
		if c.below, err = filepath.Rel(top, path); err != nil {
			return Clone{}, err
		}
		if c.top, err = filepath.EvalSymlinks(top); err != nil {
			return Clone{}, err
		}
		root, err := c.Open(dir)
		if err != nil {
			return Clone{}, err
		}
		return c, root.Close()
	}
	return Clone{}, nil // gitrepo.Open says what is wrong
}

// GitTop returns the top of the git repository around an absolute path.
func GitTop(path string) (top string, found bool) {
	for top = path; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			return top, true
		}
		if top == filepath.Dir(top) {
			return "", false
		}
	}
}

// Dir returns the path of the folder that is named so, without links if there is a Clone.
func (c Clone) Dir(named string) string {
	if c.top == "" {
		return named
	}
	return filepath.Join(c.top, c.below)
}

// Open opens the folder that is named so.
func (c Clone) Open(named string) (*os.Root, error) {
	if c.top == "" {
		return os.OpenRoot(named)
	}
	root, err := os.OpenRoot(c.top)
	if err != nil || c.below == "." {
		return root, err
	}
	for name := range strings.SplitSeq(c.below, string(filepath.Separator)) {
		next, err := openUnlinked(root, name)
		root.Close()
		if err != nil {
			return nil, err
		}
		root = next
	}
	return root, nil
}

// openUnlinked opens a folder of a folder, unless a link is in its place or comes there meanwhile.
func openUnlinked(in *os.Root, name string) (*os.Root, error) {
	before, err := in.Lstat(name)
	if err != nil {
		return nil, err
	}
	linked := &fs.PathError{Op: "open", Path: filepath.Join(in.Name(), name), Err: errNoFolder}
	if !before.IsDir() {
		return nil, linked
	}
	root, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if after, err := root.Stat("."); err != nil || !os.SameFile(before, after) {
		root.Close()
		return nil, errors.Join(linked, err)
	}
	return root, nil
}

var errNoFolder = errors.New("a link or another file is in the place of the folder, and below the top of a git " +
	"repository links are not followed; put the folder back")

// Disk returns the file system for writes: in a Clone, one that does not leave the folder.
func (c Clone) Disk() atomicfile.Disk {
	if c.top == "" {
		return atomicfile.OSDisk{}
	}
	return atomicfile.RootDisk{Dir: c.Dir(""), Open: func() (*os.Root, error) { return c.Open("") }}
}

// Text reads a file of a folder, see Tree.ReadNamed.
func (c Clone) Text(dir, name string, limit int64) ([]byte, error) {
	t, err := c.OpenTree(dir)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	b, _, err := t.ReadNamed(name, limit)
	return b, err
}
