package pebblefs

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A store holds mail, with codes to reset passwords in it: only its owner may read it. The umask may remove bits or
// leave too many, so every folder and file gets its mode explicitly.
const (
	PrivateDir  = 0o700
	PrivateFile = 0o600
)

// The names of stores that were moved aside begin with the store's name and one of these.
const (
	DamagedInfix  = ".damaged-"
	ReplacedInfix = ".before-restore-"
)

// MkdirPrivate makes a folder that only the owner can read, and its missing parents.
func MkdirPrivate(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return os.MkdirAll(dir, PrivateDir) // which reports the error
	}
	if err := os.MkdirAll(dir, PrivateDir); err != nil {
		return err
	}
	return os.Chmod(dir, PrivateDir)
}

// OpenPrivate opens a file and creates a missing one for its owner only. It ignores that a file system has no modes.
func OpenPrivate(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|os.O_CREATE, PrivateFile)
	if err == nil {
		_ = f.Chmod(PrivateFile)
	}
	return f, err
}

// Narrow makes the folder of a store and everything in it private, with the stores that were moved aside, and logs what
// was not.
func Narrow(dir string, own []string, log *slog.Logger) {
	dirs := []string{dir}
	names, _ := os.ReadDir(filepath.Dir(dir)) // where it cannot be listed, opening the store says more
	for _, e := range names {
		rest, ours := strings.CutPrefix(e.Name(), filepath.Base(dir))
		if ours && e.IsDir() && (strings.HasPrefix(rest, DamagedInfix) || strings.HasPrefix(rest, ReplacedInfix)) {
			dirs = append(dirs, filepath.Join(filepath.Dir(dir), e.Name()))
		}
	}
	for _, name := range own {
		for _, dir := range slices.Clone(dirs) {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
				dirs = append(dirs, filepath.Join(dir, name))
			}
		}
	}
	for _, dir := range dirs {
		mode, files, err := MakePrivate(dir, own)
		if mode&^PrivateDir == 0 && files == 0 && err == nil {
			continue
		}
		args := []any{"folder", dir, "mode", fmt.Sprintf("%04o", mode), "files", files}
		if err != nil {
			log.Warn("store not private: other users may read mail in it; its folder should have mode 0700, its files 0600",
				append(args, "error", err)...)
		} else {
			log.Warn("store was not private: its folder has mode 0700 now, its files 0600", args...)
		}
	}
}

// MakePrivate returns the mode that the folder had, and the number of files in it that others could read or write. Only
// the store's files are touched: Pebble's, and those that own names. A folder that is for everybody (--data /tmp), or
// holds nothing but other things, stays as it is.
func MakePrivate(dir string, own []string) (mode fs.FileMode, files int, err error) {
	info, err := os.Stat(dir) // a link's target
	if err != nil || !info.IsDir() {
		return 0, 0, nil //nolint:nilerr // a new store, or none
	}
	mode = info.Mode().Perm()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return mode, 0, nil //nolint:nilerr // opening it reports more
	}
	others := 0
	for _, e := range entries {
		info, infoErr := e.Info()
		switch name := e.Name(); {
		case infoErr != nil, name == "lost+found": // removed, or the file system's
		case !IsStoreFile(name) && name != "LOCK" && !slices.Contains(own, name):
			others++
		case e.Type().IsRegular() && info.Mode().Perm()&^PrivateFile != 0:
			files++
			err = errors.Join(err, os.Chmod(filepath.Join(dir, name), PrivateFile))
		}
	}
	switch {
	case mode&^PrivateDir == 0:
	case info.Mode()&fs.ModeSticky != 0, others > 0 && others == len(entries):
		err = errors.Join(err, errors.New("there are other things in it"))
	default:
		err = errors.Join(err, os.Chmod(dir, PrivateDir))
	}
	return mode, files, WithoutPath(err)
}

// storeFile matches the names that Pebble gives to the files of a store, except its LOCK and temporary files.
var storeFile = regexp.MustCompile(`^(MANIFEST-\d{6,20}|OPTIONS-\d{6,20}|\d{6,20}\.(sst|blob)|\d{6,20}(-\d{3})?\.log|marker\.(manifest|format-version)\.\d{6,20}\.[A-Z0-9-]{1,40})$`)

// IsStoreFile reports whether Pebble gives this name to a file of a store.
func IsStoreFile(name string) bool { return storeFile.MatchString(name) }

// IsTable reports whether Pebble gives this name to a table.
func IsTable(name string) bool { return strings.HasSuffix(name, ".sst") }
