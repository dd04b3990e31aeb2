package main

import (
	"os"
	"path/filepath"
	"syscall"
)

// giveToOwner gives a new file to the owner and the group of its folder, if root has made it: the service may edit only
// files of its own user.
func giveToOwner(dir, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	file := filepath.Join(dir, path)
	info, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return err
	}
	owner, is := info.Sys().(*syscall.Stat_t)
	if !is || owner.Uid == 0 {
		return nil
	}
	return os.Lchown(file, int(owner.Uid), int(owner.Gid))
}
