package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fencedFS is the file system that Pebble sees: another one with the fence around all that changes it. Reads pass.
type fencedFS struct {
	vfs.FS
	fence   *fence
	lock    *heldLock
	tables  *keptTables
	disk    bool         // the real disk lies below, not memory
	paced   *atomic.Bool // see Options
	backlog backlog
	// readOnly: nothing is written but, where that can be done, the lock.
	readOnly bool
	spare    string // a folder outside the fence, see spared
}

// spared reports whether a path belongs to a checkpoint in the making: what fails there fails the backup, not the store.
func (f *fencedFS) spared(name string) bool {
	rest, below := strings.CutPrefix(name, f.spare)
	return below && f.spare != "" && (rest == "" || rest[0] == filepath.Separator)
}

// rootCause drops the layers that only repeat the path.
func rootCause(err error) error {
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

// atEase reports whether flushes and merges take their time.
func (f *fencedFS) atEase() bool { return f.paced != nil && f.paced.Load() && !f.backlog.grown() }

func (f *fencedFS) Unwrap() vfs.FS { return f.FS }

// open ends an operation that yields a file for writing.
func (f *fencedFS) open(op, name string, file vfs.File, err error) (vfs.File, error) {
	f.fence.leave(op, filepath.Base(name), err)
	fenced := &fencedFile{File: file, fence: f.fence, name: filepath.Base(name)}
	if isTable(name) {
		fenced.atEase = f.atEase
	}
	return fenced, nil
}

func (f *fencedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if f.spared(name) {
		file, err := f.FS.Create(name, c)
		f.private(name, privateFile)
		return file, err
	}
	f.fence.enter()
	file, err := f.FS.Create(name, c)
	f.private(name, privateFile)
	if err == nil && f.disk && isTable(name) {
		f.tables.keep(f.FS, name)
	}
	return f.open("create", name, file, err)
}

// Open opens for reading, also a table whose directory is gone.
func (f *fencedFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	if err != nil && f.disk && isTable(name) {
		return f.tables.open(name, err)
	}
	return file, err
}

func (f *fencedFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.spared(name) {
		return f.FS.OpenReadWrite(name, c, opts...)
	}
	f.fence.enter()
	file, err := f.FS.OpenReadWrite(name, c, opts...)
	f.private(name, privateFile)
	return f.open("open", name, file, err)
}

func (f *fencedFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.fence.enter()
	file, err := f.FS.ReuseForWrite(oldname, newname, c)
	return f.open("rename", newname, file, err)
}

// OpenDir yields the handle by which the directory is fsynced.
func (f *fencedFS) OpenDir(name string) (vfs.File, error) {
	if f.spared(name) {
		return f.FS.OpenDir(name)
	}
	f.fence.enter()
	file, err := f.FS.OpenDir(name)
	return f.open("open", name, file, err)
}

func (f *fencedFS) Link(oldname, newname string) error {
	if f.spared(newname) {
		return f.FS.Link(oldname, newname)
	}
	f.fence.enter()
	err := f.FS.Link(oldname, newname)
	if err == nil && f.disk && isTable(newname) {
		f.tables.keep(f.FS, newname)
	}
	return f.expect("link", newname, err, fs.ErrExist)
}

func (f *fencedFS) Rename(oldname, newname string) error {
	if f.spared(newname) {
		return f.FS.Rename(oldname, newname)
	}
	f.fence.enter()
	return f.expect("rename", newname, f.FS.Rename(oldname, newname), nil)
}

// Remove lets "not there" pass: Pebble removes what an interrupted run may have left.
func (f *fencedFS) Remove(name string) error {
	if f.spared(name) {
		return f.FS.Remove(name)
	}
	f.fence.enter()
	f.tables.drop(name)
	return f.expect("remove", name, f.FS.Remove(name), fs.ErrNotExist)
}

func (f *fencedFS) RemoveAll(name string) error {
	if f.spared(name) {
		return f.FS.RemoveAll(name)
	}
	f.fence.enter()
	return f.expect("remove", name, f.FS.RemoveAll(name), fs.ErrNotExist)
}

func (f *fencedFS) MkdirAll(dir string, _ os.FileMode) error {
	if f.spared(dir) {
		return f.mkdir(dir)
	}
	f.fence.enter()
	return f.expect("create", dir, f.mkdir(dir), nil)
}

// mkdir makes a private folder. One that is there is narrow's.
func (f *fencedFS) mkdir(dir string) error {
	_, err := f.FS.Stat(dir)
	made := f.FS.MkdirAll(dir, privateDir)
	if err != nil {
		f.private(dir, privateDir)
	}
	return made
}

// private sets the mode of what was made, since Pebble's files are open to all that the umask lets in. A file system
// without modes is not the store's fault, and narrow tells of it.
func (f *fencedFS) private(name string, mode os.FileMode) {
	if f.disk {
		_ = os.Chmod(name, mode)
	}
}

// expect ends an operation; Pebble gets to see an error that it can deal with.
func (f *fencedFS) expect(op, name string, err, fine error) error {
	if fine != nil && errors.Is(err, fine) {
		f.fence.leave(op, filepath.Base(name), nil)
		return err
	}
	f.fence.leave(op, filepath.Base(name), err)
	return nil
}

// Lock hands the lock's life to the Store, which gives it back also where Pebble can no longer be closed.
func (f *fencedFS) Lock(name string) (io.Closer, error) {
	var closer io.Closer
	var err error
	switch {
	case f.disk && f.readOnly:
		closer, err = lockForReading(name)
	case f.disk:
		closer, err = lockFile(name)
	default:
		closer, err = f.FS.Lock(name)
	}
	if err != nil {
		return nil, err
	}
	f.lock.hold(closer)
	return f.lock, nil
}

// A heldLock is closed once, by Pebble or by the Store.
type heldLock struct {
	mu     sync.Mutex // guards closer
	closer io.Closer
}

func (l *heldLock) hold(c io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closer = c
}

// Close gives the lock back; again, or where none is held, it does nothing.
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

// A fencedFile fences a file that was opened for writing, or a directory opened for fsync.
type fencedFile struct {
	vfs.File
	fence *fence
	name  string

	atEase func() bool // of a table: whether who writes it takes its time; nil for other files
	from   time.Time   // when Write ended last
}

func (f *fencedFile) Write(p []byte) (n int, err error) {
	f.fence.enter()
	n, err = f.File.Write(p)
	f.fence.leave("write", f.name, err)
	f.rest()
	return n, nil
}

// longestRest is what a flush or compaction pauses at most at a time.
const longestRest = 2 * time.Millisecond

// rest makes who writes a table pause as long as it has worked since its last write. Pebble merges as fast as it can,
// which after a change of many files takes a whole core for seconds, and on a small machine that core is one that
// requests wait for. Nobody waits for a merge, unless writes get ahead of it.
func (f *fencedFile) rest() {
	if f.atEase == nil || !f.atEase() {
		f.from = time.Time{}
		return
	}
	if !f.from.IsZero() {
		time.Sleep(min(time.Since(f.from), longestRest))
	}
	f.from = time.Now()
}

func (f *fencedFile) WriteAt(p []byte, off int64) (n int, err error) {
	f.fence.enter()
	n, err = f.File.WriteAt(p, off)
	f.fence.leave("write", f.name, err)
	return n, nil
}

func (f *fencedFile) Sync() error {
	f.fence.enter()
	f.fence.leave("sync", f.name, f.File.Sync())
	return nil
}

func (f *fencedFile) SyncData() error {
	f.fence.enter()
	f.fence.leave("sync", f.name, f.File.SyncData())
	return nil
}

func (f *fencedFile) SyncTo(length int64) (fullSync bool, err error) {
	f.fence.enter()
	fullSync, err = f.File.SyncTo(length)
	f.fence.leave("sync", f.name, err)
	return fullSync, nil
}

// Preallocate may fail: it is an optimisation, many file systems lack it, and Pebble ignores its error. A disk without
// room shows in the write that follows.
func (f *fencedFile) Preallocate(offset, length int64) error {
	f.fence.enter()
	err := f.File.Preallocate(offset, length)
	f.fence.leave("", "", nil)
	return err
}

// Close can be where a network file system reports that it could not write.
func (f *fencedFile) Close() error {
	f.fence.enter()
	f.fence.leave("close", f.name, f.File.Close())
	return nil
}
