package configsrc

import (
	"errors"

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
