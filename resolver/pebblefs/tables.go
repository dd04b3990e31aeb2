package pebblefs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// keptTables holds every table of the directory open for reading. Pebble opens a table when it first reads it, so
// without this a directory that is deleted while in use would take all unread tables along: nearly everything that the
// store in memory has to copy. It costs one descriptor a table, a few dozen for 100,000 projects.
type keptTables struct {
	mu     sync.Mutex // guards m
	m      map[string]vfs.File
	closed bool
}

// keepTable opens a table that was just created, or found. A failure only loses the safeguard.
func (k *keptTables) keepTable(base vfs.FS, name string) {
	f, err := base.Open(name)
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.m[filepath.Base(name)] != nil {
		f.Close()
		return
	}
	if k.m == nil {
		k.m = make(map[string]vfs.File)
	}
	k.m[filepath.Base(name)] = f
}

// drop closes a table that Pebble removes, which it does when no reader uses it.
func (k *keptTables) drop(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.m[filepath.Base(name)]; f != nil {
		f.Close()
		delete(k.m, filepath.Base(name))
	}
}

// open replaces a failed attempt to open a deleted table.
func (k *keptTables) open(name string, err error) (vfs.File, error) {
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.m[filepath.Base(name)]; f != nil {
		return sharedTable{f}, nil
	}
	return nil, err
}

func (k *keptTables) closeAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, f := range k.m {
		f.Close()
	}
	k.m = nil
}

// A sharedTable is read by position only, by any number of readers; its descriptor belongs to keptTables.
type sharedTable struct{ vfs.File }

// Close leaves the descriptor open.
func (sharedTable) Close() error { return nil }
