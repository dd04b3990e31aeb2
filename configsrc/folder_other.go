//go:build !linux

package configsrc

import (
	"io/fs"
	"os"
)

// A folder has the names that were in a folder when it was read.
type folder struct{ left []fs.DirEntry }

// openFolder reads the names at once, or they would not be those of one moment. The folder takes f over.
func (t *tree) openFolder(f *os.File) (*folder, error) {
	defer f.Close()
	left, err := f.ReadDir(-1)
	return &folder{left}, err
}

// next returns the next name, with its type: no bits at all for a regular file, fs.ModeIrregular for one that only stat
// can tell.
func (d *folder) next() (name string, kind fs.FileMode, ok bool) {
	if len(d.left) == 0 {
		return "", 0, false
	}
	first := d.left[0]
	d.left = d.left[1:]
	return first.Name(), first.Type(), true
}

// regular fills in the entry of a regular file; false where that takes a look at it by its path.
func (d *folder) regular(string, *entry) bool { return false }

func (d *folder) close() {}
