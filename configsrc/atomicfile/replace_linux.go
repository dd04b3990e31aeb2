package atomicfile

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// exchangeNames exchanges two files atomically.
func exchangeNames(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return errors.ErrUnsupported
	}
	return err
}

// Lock takes a shared lock on a folder (flock(2)), which says that a write is under way there, until it is closed or the
// process is dead. Clear respects it, in this process and in others; writers do not keep each other out. On a file system
// without locks it says nothing.
func Lock(dir string) (io.Closer, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return f, nil
		}
		if time.Now().After(deadline) {
			f.Close()
			return nil, ErrLocked
		}
	}
}

// claimFolder keeps writers out of a folder until it is closed: ErrLocked where one is at work, and
// errors.ErrUnsupported where that cannot be told.
func claimFolder(dir string) (io.Closer, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return nil, errors.ErrUnsupported
}
