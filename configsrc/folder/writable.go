package folder

import "syscall"

// Writable returns why this user cannot make files in a folder, or nil, as access(2) judges it. That says nothing about the
// files in it: those of another owner or group a write may be unable to keep.
func Writable(dir string) error {
	const write, search = 2, 1
	return syscall.Access(dir, write|search)
}
