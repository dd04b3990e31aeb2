package edits

import (
	"crypto/sha256"
	"fmt"
	"io/fs"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// Contents are the files of a Workspace at one time: a *folder.Tree, or files that are in no folder.
type Contents interface {
	judge.Reader
	// Read returns a config file and its stamp.
	Read(path string, limit int64) ([]byte, catalog.Stamp, error)
	Close()
}

// A Stored reads files that are in no folder, such as those of a branch; nil for a file that is missing.
type Stored func(path string) ([]byte, error)

// Over returns files over others; a nil one is removed.
func Over(files map[string][]byte, under Stored) Stored {
	return func(path string) ([]byte, error) {
		if b, is := files[path]; is {
			return b, nil
		}
		return under(path)
	}
}

// ReadNamed implements Contents.
func (f Stored) ReadNamed(path string, limit int64) ([]byte, catalog.Stamp, error) {
	return f.Read(path, limit)
}

// Read implements Contents.
func (f Stored) Read(path string, limit int64) ([]byte, catalog.Stamp, error) {
	b, err := f(path)
	switch {
	case err != nil:
		return nil, catalog.Stamp{}, err
	case b == nil:
		return nil, catalog.Stamp{}, fs.ErrNotExist
	case int64(len(b)) > limit:
		return nil, catalog.Stamp{}, fmt.Errorf("has %d bytes, %d are allowed", len(b), limit)
	}
	return b, StampOf(b), nil
}

// Close implements Contents.
func (f Stored) Close() {}

// StampOf returns the stamp of content that is no file: its size and hash.
func StampOf(b []byte) catalog.Stamp {
	return catalog.Stamp{Size: int64(len(b)), Hash: sha256.Sum256(b)}
}

// changedContents are Contents with some files as they are to be; a nil one is removed.
type changedContents struct {
	Contents
	files map[string][]byte
}

func (c changedContents) ReadNamed(path string, limit int64) ([]byte, catalog.Stamp, error) {
	if _, is := c.files[path]; is {
		return Over(c.files, nil).ReadNamed(path, limit)
	}
	return c.Contents.ReadNamed(path, limit)
}

// Locate decodes a file as it is on disk now.
func Locate(t Contents, display, path string) (*hclfile.Result, error) {
	b, _, err := t.Read(path, folder.MaxFileBytes)
	if err != nil {
		return nil, err
	}
	return judge.Positions(display, b), nil
}
