//go:build !linux

package configsrc

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

func createTemp(dir, pattern string, _ fs.FileMode) (TempFile, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return f, nil
}

func readFile(name string) ([]byte, error) { return os.ReadFile(name) }
func rename(from, to string) error         { return os.Rename(from, to) }
func remove(name string) error             { return os.Remove(name) }

func syncDir(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// readPlain is for systems that tell whether a path leads through links.
func readPlain(string, int64) ([]byte, fs.FileInfo, bool) { return nil, nil, false }

// changed is for systems that tell when an inode was changed.
func changed(fs.FileInfo) time.Time { return time.Time{} }

type fileID struct{ dev, inode uint64 }

func identify(name string) (id fileID, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return id, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id = fileID{uint64(st.Dev), st.Ino}
	}
	return id, nil
}

type seen struct {
	dir   bool
	moved int64
}

func lookAt(name string) (s seen, ok bool) {
	info, err := os.Lstat(name)
	if err != nil {
		return s, false
	}
	return seen{info.IsDir(), info.ModTime().UnixNano()}, true
}
