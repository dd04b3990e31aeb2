package atomicfile

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func (OSDisk) Exchange(a, b string) error { return exchangeIn(unix.AT_FDCWD, a, unix.AT_FDCWD, b) }

// exchangeAt swaps two files, each by its name in a folder.
func exchangeAt(dirA *os.File, a string, dirB *os.File, b string) error {
	return exchangeIn(int(dirA.Fd()), a, int(dirB.Fd()), b)
}

func exchangeIn(dirA int, a string, dirB int, b string) error {
	err := unix.Renameat2(dirA, a, dirB, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return errors.ErrUnsupported
	}
	return err
}

// Lock takes a shared lock on a folder (flock(2)), which marks a running write there, until it is closed or the process
// dies. Clear respects it, in this process and in others; writers do not exclude each other. On a file system without
// locks it has no effect.
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

// claimFolder keeps writers out of a folder until it is closed: ErrLocked if a write is running, and
// errors.ErrUnsupported if the file system cannot tell.
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
