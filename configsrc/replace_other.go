//go:build !linux

package configsrc

// swap exchanges two files atomically, where the system can.
func swap(a, b string) error { return errNoSwap }

// beingWritten reports false: whether somebody has the file open for writing cannot be told here.
func beingWritten(string) bool { return false }
