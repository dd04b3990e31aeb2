//go:build unix

package pebblefs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// LockFile takes the lock of a data directory: flock on the file name, which contains the holder's pid. The lock
// decides; the pid only informs, so an old one in an unlocked file means nothing.
//
// Pebble's own lock is fcntl's, which belongs to the process and is kept in a table by name: a directory whose first
// instance has failed could never be opened again, and one that was replaced while open would look free. A flock
// belongs to the open file, so both work.
func LockFile(name string) (io.Closer, error) {
	f, err := OpenPrivate(name, os.O_RDWR|syscall.O_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		return nil, err
	}
	// A full disk must not keep the store from being read: a pid that cannot be written is omitted.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

// lockForReading takes the same lock in a directory that may be read-only. Without a lock file there is no one to
// exclude: a process that can write creates one.
func lockForReading(name string) (io.Closer, error) {
	closer, err := LockFile(name)
	if !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrPermission) {
		return closer, err
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		return nil, err
	}
	return f, nil
}

// lockWait is how long a lock that somebody holds is tried again: a child of the former holder, git for example, holds it
// from its fork until it is another program. On a busy machine that takes a moment.
const lockWait = time.Second

// flock locks f, or closes it and returns why it could not.
func flock(f *os.File) error {
	var err error
	for end := time.Now().Add(lockWait); ; {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) && time.Now().Before(end) {
			time.Sleep(10 * time.Millisecond)
		} else if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &LockedError{Dir: filepath.Dir(f.Name()), PID: readPID(f)}
	} else if err != nil {
		err = &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	if err != nil {
		f.Close()
	}
	return err
}

// readPID returns 0 for invalid content.
func readPID(f *os.File) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}

// Holder returns the process that has a data directory open, nil if none has. It changes nothing on the disk: it tries
// a shared lock and gives it back at once, for which a server that starts at that moment waits.
func Holder(dir string) (*LockedError, error) {
	f, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &LockedError{Dir: dir, PID: readPID(f)}, nil
	}
	return nil, err
}
