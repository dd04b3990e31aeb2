package pebblefs

import (
	"errors"
	"os"
)

// SyncDir fsyncs a folder.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return WithoutPath(err)
	}
	return WithoutPath(errors.Join(f.Sync(), f.Close()))
}

// swapByRenames works where no atomic exchange is available. A crash between the two renames leaves no dir, but both
// stores.
func swapByRenames(aside, dir string) error {
	former := aside + "-former"
	if err := os.Rename(dir, former); err != nil {
		return err
	}
	if err := os.Rename(aside, dir); err != nil {
		return errors.Join(err, os.Rename(former, dir))
	}
	return os.Rename(former, aside)
}
