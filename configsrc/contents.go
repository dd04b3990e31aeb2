package configsrc

import (
	"crypto/sha256"
	"fmt"
	"io/fs"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// contents are the files of a workspace at one time: a *folder.Tree, or files that are in no folder.
type contents interface {
	judge.Reader
	// Read returns a config file and its stamp.
	Read(path string, limit int64) ([]byte, catalog.Stamp, error)
	Close()
}

// A stored reads files that are in no folder, such as those of a branch; nil if there is no such file.
type stored func(path string) ([]byte, error)

// over returns files over others; a nil one is removed.
func over(files map[string][]byte, under stored) stored {
	return func(path string) ([]byte, error) {
		if b, is := files[path]; is {
			return b, nil
		}
		return under(path)
	}
}

func (f stored) ReadNamed(path string, limit int64) ([]byte, catalog.Stamp, error) {
	return f.Read(path, limit)
}

func (f stored) Read(path string, limit int64) ([]byte, catalog.Stamp, error) {
	b, err := f(path)
	switch {
	case err != nil:
		return nil, catalog.Stamp{}, err
	case b == nil:
		return nil, catalog.Stamp{}, fs.ErrNotExist
	case int64(len(b)) > limit:
		return nil, catalog.Stamp{}, fmt.Errorf("has %d bytes, %d are allowed", len(b), limit)
	}
	return b, stampOf(b), nil
}

func (f stored) Close() {}

// stampOf returns the stamp of content that is no file: its size and hash.
func stampOf(b []byte) catalog.Stamp {
	return catalog.Stamp{Size: int64(len(b)), Hash: sha256.Sum256(b)}
}

// changedContents are contents with some files as they are to be; a nil one is removed.
type changedContents struct {
	contents
	files map[string][]byte
}

func (c changedContents) ReadNamed(path string, limit int64) ([]byte, catalog.Stamp, error) {
	if _, is := c.files[path]; is {
		return over(c.files, nil).ReadNamed(path, limit)
	}
	return c.contents.ReadNamed(path, limit)
}

// locate decodes a file as it is on disk now.
func locate(t contents, display, path string) (*hclfile.Result, error) {
	b, _, err := t.Read(path, folder.MaxFileBytes)
	if err != nil {
		return nil, err
	}
	return judge.Positions(display, b), nil
}
