package configsrc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// swap exchanges two files atomically.
func swap(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return errNoSwap
	}
	return err
}

// beingWritten reports whether somebody has the file open for writing: an editor that writes in place may be between two
// system calls, and the rest of its text would go with the old file. A read lease is what the kernel refuses then; where
// there are no leases, nothing is known, and it reports false.
func beingWritten(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close() // gives the lease back, too
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return errors.Is(err, unix.EAGAIN)
}
