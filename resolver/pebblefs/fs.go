package pebblefs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options are the settings of an FS. The zero value is usable.
type Options struct {
	// ReadOnly: nothing is written except, if possible, the lock.
	ReadOnly bool
	// Spare is a folder outside the barrier, for checkpoints: an error there fails only the backup. "" for none.
	Spare string
	// AtEase reports whether flushes and merges are paced. Nil: never.
	AtEase func() bool
	// StartEmpty says, for a person whose directory is of another format, how to start without it and what that loses.
	StartEmpty string
}

// An FS is the fail-stop file system that Pebble sees: base with a Barrier around every operation that changes it.
// Reads pass through.
type FS struct {
	vfs.FS
	*Barrier
	Options
	Disk   bool // base is the real disk, not memory
	lock   heldLock
	tables keptTables
}

// New returns a fail-stop file system over base.
func New(base vfs.FS, o Options) *FS {
	return &FS{FS: base, Barrier: newBarrier(), Options: o, Disk: vfs.Root(base) == vfs.Default}
}

// Base returns the file system without the barrier.
func (f *FS) Base() vfs.FS { return f.FS }

// keepTable holds a new file of the directory open if it is a table, see keptTables.
func (f *FS) keepTable(name string) {
	if f.Disk && IsTable(name) && !f.spared(name) {
		f.tables.keepTable(f.FS, name)
	}
}

// closeTables closes the tables held open.
func (f *FS) closeTables() { f.tables.closeAll() }

// unlock releases the lock. The lock only excludes other processes, so a failure changes nothing for this one.
func (f *FS) unlock() { _ = f.lock.Close() }

// spared reports whether a path belongs to a running checkpoint: an error there fails the backup, not the store.
func (f *FS) spared(name string) bool {
	rest, below := strings.CutPrefix(name, f.Spare)
	return below && f.Spare != "" && (rest == "" || rest[0] == filepath.Separator)
}

// RootCause removes the layers that only repeat the path.
func RootCause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	var no syscall.Errno
	switch {
	case errors.As(err, &no):
		return no
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}

// Unwrap is for vfs.Root.
func (f *FS) Unwrap() vfs.FS { return f.FS }

// change runs an operation that changes the directory. Pebble gets the error fine, which it can handle, and no other.
func (f *FS) change(op, name string, fine error, do func() error) error {
	if f.spared(name) {
		return do()
	}
	f.enter()
	err := do()
	if fine != nil && errors.Is(err, fine) {
		f.leave(op, filepath.Base(name), nil)
		return err
	}
	f.leave(op, filepath.Base(name), err)
	return nil
}

// openFile is change for an operation that returns a file for writing.
func (f *FS) openFile(op, name string, open func() (vfs.File, error)) (opened vfs.File, err error) {
	err = f.change(op, name, nil, func() (err error) {
		opened, err = open()
		return err
	})
	if err != nil || f.spared(name) {
		return opened, err
	}
	guarded := &file{File: opened, barrier: f.Barrier, name: filepath.Base(name)}
	if IsTable(name) {
		guarded.atEase = f.AtEase
	}
	return guarded, nil
}

func (f *FS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.openFile("create", name, func() (vfs.File, error) {
		file, err := f.FS.Create(name, c)
		f.private(name, PrivateFile)
		if err == nil {
			f.keepTable(name)
		}
		return file, err
	})
}

// Open opens for reading, even a table whose directory is gone.
func (f *FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	if err != nil && f.Disk && IsTable(name) {
		return f.tables.open(name, err)
	}
	return file, err
}

func (f *FS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.openFile("open", name, func() (vfs.File, error) {
		file, err := f.FS.OpenReadWrite(name, c, opts...)
		f.private(name, PrivateFile)
		return file, err
	})
}

func (f *FS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.openFile("rename", newname, func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

// OpenDir returns the handle by which the directory is fsynced.
func (f *FS) OpenDir(name string) (vfs.File, error) {
	return f.openFile("open", name, func() (vfs.File, error) { return f.FS.OpenDir(name) })
}

func (f *FS) Link(oldname, newname string) error {
	return f.change("link", newname, fs.ErrExist, func() error {
		err := f.FS.Link(oldname, newname)
		if err == nil {
			f.keepTable(newname)
		}
		return err
	})
}

func (f *FS) Rename(oldname, newname string) error {
	return f.change("rename", newname, nil, func() error { return f.FS.Rename(oldname, newname) })
}

// Remove lets "not there" pass: Pebble removes files that an interrupted run may have left.
func (f *FS) Remove(name string) error {
	return f.change("remove", name, fs.ErrNotExist, func() error {
		if !f.spared(name) {
			f.tables.drop(name)
		}
		return f.FS.Remove(name)
	})
}

func (f *FS) RemoveAll(name string) error {
	return f.change("remove", name, fs.ErrNotExist, func() error { return f.FS.RemoveAll(name) })
}

func (f *FS) MkdirAll(dir string, _ os.FileMode) error {
	return f.change("create", dir, nil, func() error { return f.mkdir(dir) })
}

// mkdir makes a private folder. An existing one is left to Narrow.
func (f *FS) mkdir(dir string) error {
	_, err := f.FS.Stat(dir)
	made := f.FS.MkdirAll(dir, PrivateDir)
	if err != nil {
		f.private(dir, PrivateDir)
	}
	return made
}

// private sets the mode of a new file or folder, because Pebble leaves the mode to the umask. A file system without
// modes is not the store's fault; Narrow reports it.
func (f *FS) private(name string, mode os.FileMode) {
	if f.Disk {
		_ = os.Chmod(name, mode)
	}
}

// Lock keeps the lock, so that unlock can release it even if Pebble can no longer be closed.
func (f *FS) Lock(name string) (io.Closer, error) {
	var closer io.Closer
	var err error
	switch {
	case f.Disk && f.ReadOnly:
		closer, err = lockForReading(name)
	case f.Disk:
		closer, err = LockFile(name)
	default:
		closer, err = f.FS.Lock(name)
	}
	if err != nil {
		return nil, err
	}
	f.lock.hold(closer)
	return &f.lock, nil
}

// A heldLock is closed once, by Pebble or by unlock.
type heldLock struct {
	mu     sync.Mutex // guards closer
	closer io.Closer
}

func (l *heldLock) hold(c io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closer = c
}

// Close releases the lock; without a lock it does nothing.
func (l *heldLock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closer == nil {
		return nil
	}
	err := l.closer.Close()
	l.closer = nil
	return err
}

// A file puts the barrier around a file opened for writing, or a directory opened for fsync.
type file struct {
	vfs.File
	barrier *Barrier
	name    string

	atEase func() bool // for a table: whether its writer is paced; nil for other files
	from   time.Time   // end of the last Write
}

func (f *file) Write(p []byte) (n int, err error) {
	f.barrier.enter()
	n, err = f.File.Write(p)
	f.barrier.leave("write", f.name, err)
	f.rest()
	return n, nil
}

// longestRest is the longest pause of a flush or compaction.
const longestRest = 2 * time.Millisecond

// rest pauses the writer of a table for as long as it has worked since its last write. Pebble merges as fast as it can,
// which after a change of many files takes a whole core for seconds; on a small machine requests wait for that core.
// Nothing waits for a merge, unless writes get ahead of it.
func (f *file) rest() {
	if f.atEase == nil || !f.atEase() {
		f.from = time.Time{}
		return
	}
	if !f.from.IsZero() {
		time.Sleep(min(time.Since(f.from), longestRest))
	}
	f.from = time.Now()
}

func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	f.barrier.enter()
	n, err = f.File.WriteAt(p, off)
	f.barrier.leave("write", f.name, err)
	return n, nil
}

func (f *file) Sync() error {
	f.barrier.enter()
	f.barrier.leave("sync", f.name, f.File.Sync())
	return nil
}

func (f *file) SyncData() error {
	f.barrier.enter()
	f.barrier.leave("sync", f.name, f.File.SyncData())
	return nil
}

func (f *file) SyncTo(length int64) (fullSync bool, err error) {
	f.barrier.enter()
	fullSync, err = f.File.SyncTo(length)
	f.barrier.leave("sync", f.name, err)
	return fullSync, nil
}

// Preallocate may fail: it is an optimisation, many file systems lack it, and Pebble ignores its error. A full disk
// shows in the following write.
func (f *file) Preallocate(offset, length int64) error {
	f.barrier.enter()
	err := f.File.Preallocate(offset, length)
	f.barrier.leave("", "", nil)
	return err
}

// Close is where a network file system may report a failed write.
func (f *file) Close() error {
	f.barrier.enter()
	f.barrier.leave("close", f.name, f.File.Close())
	return nil
}
