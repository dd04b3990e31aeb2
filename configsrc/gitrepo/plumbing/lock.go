package plumbing

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// lockMark is the content of the file that our lock is a second name of.
const lockMark = "fingerpost\n"

// UnlockEvery is the pause before the service tries again to remove its lock.
const UnlockEvery = 500 * time.Millisecond

// ErrLocked: another git holds the lock.
var ErrLocked = errors.New("git's index.lock exists: another git is at work, or one was killed and its lock has to " +
	"be removed")

// An IndexLock is git's lock on the index, as this service takes it. It is a hard link to a file of ours that stays,
// the mark: a link appears together with its content, and its inode tells whose lock it is. The mark is synced before
// its first link, so this holds after a power cut, too.
type IndexLock struct {
	path, mark string
	// told is called with each result of a removal, nil once the lock is gone.
	told func(error)

	mu     sync.Mutex  // guards what follows
	inode  fs.FileInfo // of the mark
	synced bool        // the mark is on the disk
	held   bool
	// tookOver: it was left by an earlier process, and stays held until release, so that people's git is locked out until
	// the index is right again.
	TookOver bool
	closed   bool
}

// NewIndexLock returns the lock of a repository. told is called with each result of a removal, nil once the lock is gone.
func NewIndexLock(gitDir string, told func(error)) *IndexLock {
	return &IndexLock{path: filepath.Join(gitDir, "index.lock"), mark: filepath.Join(gitDir, "fingerpost-mark"),
		told: told}
}

// acquire takes the lock; ErrLocked if another git has it. A lock of ours that could not be removed is taken over: the
// callers take the lock one after the other.
func (l *IndexLock) acquire() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.makeMark(); err != nil {
		return fmt.Errorf("make the lock on git's index: %w", err)
	}
	err := os.Link(l.mark, l.path)
	if errors.Is(err, fs.ErrExist) {
		if !l.isOurs() {
			return ErrLocked
		}
		err = nil
	}
	l.held = err == nil
	return err
}

// TakeOver takes the lock if an earlier process of ours has left it behind.
func (l *IndexLock) TakeOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inode, _ = os.Lstat(l.mark)
	l.held = l.isOurs()
	l.TookOver = l.held
	return l.held
}

// Release gives the lock back. If that fails, it is tried again until it succeeds.
func (l *IndexLock) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.TookOver = false, false
	l.remove()
}

// Under runs f while this service holds the lock.
func (l *IndexLock) Under(f func() error) error {
	l.mu.Lock()
	held := l.TookOver
	l.mu.Unlock()
	if held {
		return f()
	}
	if err := l.acquire(); err != nil {
		return err
	}
	defer l.Release()
	return f()
}

// remove removes the lock unless an operation holds it. The caller holds mu.
func (l *IndexLock) remove() {
	if l.held || l.closed {
		return
	}
	var err error
	if l.isOurs() { // a person may have removed it, as git advises, and another git may have it now
		err = os.Remove(l.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if l.told(err); err == nil {
		return
	}
	time.AfterFunc(UnlockEvery, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.remove()
	})
}

// Close ends the attempts to remove the lock, with a last one.
func (l *IndexLock) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove()
	l.closed = true
}

// Ours reports whether the lock exists and is ours.
func (l *IndexLock) Ours() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isOurs()
}

// isOurs reports whether the lock exists and is ours. The caller holds mu.
func (l *IndexLock) isOurs() bool {
	info, err := os.Lstat(l.path)
	if err != nil {
		return false
	}
	if l.inode != nil && os.SameFile(info, l.inode) {
		return true
	}
	b, err := os.ReadFile(l.path) // the mark may be gone
	return err == nil && strings.HasPrefix(string(b), lockMark)
}

// makeMark makes the mark and syncs it, once a process. The caller holds mu.
func (l *IndexLock) makeMark() error {
	if info, err := os.Lstat(l.mark); err == nil && l.synced && os.SameFile(info, l.inode) {
		return nil
	}
	f, err := os.OpenFile(l.mark, os.O_RDWR|os.O_CREATE, 0o666) // without O_TRUNC: a lock of ours may be the same file
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(len(lockMark))+1))
	if err == nil && string(b) != lockMark {
		if _, err = f.WriteAt([]byte(lockMark), 0); err == nil {
			err = f.Truncate(int64(len(lockMark)))
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = SyncFolder(filepath.Dir(l.mark))
	}
	if err == nil {
		l.inode, err = f.Stat()
	}
	l.synced = err == nil
	return err
}
