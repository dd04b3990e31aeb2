//go:build !linux

package store

// swapDirs exchanges two folders; there is no single step for it here.
func swapDirs(aside, dir string) error { return swapByRenames(aside, dir) }
