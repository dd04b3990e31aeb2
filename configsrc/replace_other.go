//go:build !linux

package configsrc

// swap exchanges two files atomically, where the system can.
func swap(a, b string) error { return errNoSwap }
