//go:build !linux

package pebblefs

// Exchange exchanges two folders by renames; there is no single step for it here.
func Exchange(aside, dir string) error { return swapByRenames(aside, dir) }
