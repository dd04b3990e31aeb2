package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// swapFiles exchanges two files atomically. It returns errors.ErrUnsupported if the file system cannot.
func swapFiles(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return errors.ErrUnsupported
	}
	return err
}

// syncDisks flushes all dirty pages of the kernel, so that no measured fsync pays for them.
func syncDisks() { unix.Sync() }

const fsTmpfs = "tmpfs"

// fileSystem returns the type of the file system that holds a folder.
func fileSystem(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", fmt.Errorf("ask for the file system of %s: %w", dir, err)
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", nil
	case unix.XFS_SUPER_MAGIC:
		return "xfs", nil
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs", nil
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs", nil
	case unix.TMPFS_MAGIC:
		return fsTmpfs, nil
	}
	return fmt.Sprintf("%#x (statfs f_type)", uint32(st.Type)), nil
}
