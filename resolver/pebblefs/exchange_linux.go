package pebblefs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Exchange exchanges two folders, in one step if the file system can.
func Exchange(aside, dir string) error {
	err := unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return swapByRenames(aside, dir)
	}
	return err
}
