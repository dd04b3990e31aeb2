package pebblefs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// MoveAside renames a damaged directory to "<dir>.damaged-<UTC time>" and returns the new name. It deletes nothing. No
// Store may be open on it.
func MoveAside(dir string, now time.Time) (string, error) {
	dir = filepath.Clean(dir)
	aside := FreeName(dir+DamagedInfix, now)
	return aside, os.Rename(dir, aside)
}

// FreeName appends a time to prefix, and a number if that name is taken: two calls within a second would collide, and a
// rename onto a folder that is not empty fails.
func FreeName(prefix string, now time.Time) string {
	base := prefix + now.UTC().Format("20060102T150405Z")
	name := base
	for n := 2; n <= 100; n++ {
		if _, err := os.Lstat(name); err != nil {
			break
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

// MoveFilesAside moves the store's files from a damaged directory into a new one, "<dir>.damaged-<UTC time>", and
// returns its name. Other contents of the directory, such as other stores, stay. It deletes nothing. No store may be
// open on dir.
//
// The markers go first: Dir.Inspect reports a directory with tables or a manifest but without their marker as damaged,
// so if the process ends half-way, the next start moves the rest. The logs go next, because no store may replay the
// remaining ones.
func MoveFilesAside(dir string, now time.Time) (string, error) {
	dir = filepath.Clean(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", WithoutPath(err)
	}
	aside := FreeName(dir+DamagedInfix, now)
	if err := MkdirPrivate(aside); err != nil {
		return "", WithoutPath(err)
	}
	order := func(name string) int {
		switch {
		case strings.HasPrefix(name, "marker."):
			return 0
		case strings.HasSuffix(name, ".log"):
			return 1
		}
		return 2
	}
	for pass := range 3 {
		for _, e := range entries {
			if name := e.Name(); (IsStoreFile(name) || strings.HasPrefix(name, "mail-")) && order(name) == pass {
				if err := os.Rename(filepath.Join(dir, name), filepath.Join(aside, name)); err != nil {
					return "", WithoutPath(err)
				}
			}
		}
		if err := errors.Join(SyncDir(aside), SyncDir(dir)); err != nil {
			return "", err
		}
	}
	return aside, SyncDir(filepath.Dir(dir))
}
