package pebblefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// What Open, Apply, the reads and Err report; test with errors.Is.
var (
	// ErrLocked: another process has the directory open, see LockedError.
	ErrLocked = errors.New("the data directory is in use")
	// ErrUnavailable: the disk refuses (full, read-only, I/O error, no permission, directory gone). Data that is there
	// may be good. A store that says so once never writes again.
	ErrUnavailable = errors.New("the data directory cannot be used")
	// ErrDamaged: the disk works, but what is on it is no sound store. See MoveAside.
	ErrDamaged = errors.New("the data directory is damaged")
	// ErrNewer: a later release wrote the directory. Nothing was changed.
	ErrNewer = errors.New("the data directory was written by a newer fingerpost")
	// ErrNoStore: a directory that is to be read only holds no store, or is not there.
	ErrNoStore = errors.New("there is no store in it")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("the store is closed")
)

// A LockedError says who has the data directory. It is an ErrLocked.
type LockedError struct {
	Dir string
	PID int // 0 when it is not known
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("open %s: another process has it", e.Dir)
	}
	return fmt.Sprintf("open %s: process %d has it", e.Dir, e.PID)
}

// Is makes a LockedError an ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// Newer reports a directory of a later release and what can be done.
func Newer(dir, what string, has, knows uint64) error {
	return fmt.Errorf("open %s: %w (%s %d, this release knows up to %d): start that release again, or move the directory away and the store is rebuilt from the files",
		dir, ErrNewer, what, has, knows)
}

// Refused reports whether err is the operating system's word that the disk, its permissions or the process's limits do
// not allow something, as opposed to wrong content.
func Refused(err error) bool {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return errors.Is(err, fs.ErrPermission)
	}
	switch no {
	case syscall.ENOENT, syscall.EEXIST, syscall.EISDIR, syscall.EINVAL:
		return false
	}
	return true
}

// Classify turns a failure of Pebble's into one of these errors. missing says that the directory itself is not there any
// more.
func Classify(err error, missing bool) error {
	switch {
	case err == nil, errors.Is(err, ErrUnavailable), errors.Is(err, ErrDamaged), errors.Is(err, ErrLocked), errors.Is(err, ErrNewer),
		errors.Is(err, ErrNoStore):
		return err
	case missing, Refused(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, WithoutPath(err))
	}
	return fmt.Errorf("%w: %w", ErrDamaged, WithoutPath(err))
}

// WithoutPath shortens the absolute path in an operating system's error to the file's name.
func WithoutPath(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return fmt.Errorf("%s %s: %w", pe.Op, filepath.Base(pe.Path), pe.Err)
	case errors.As(err, &le):
		return fmt.Errorf("%s %s: %w", le.Op, filepath.Base(le.New), le.Err)
	}
	return err
}

// MoveAside renames a damaged directory to "<dir>.damaged-<UTC time>" and returns the new name. It deletes nothing. No
// Store may be open on it.
func MoveAside(dir string, now time.Time) (string, error) {
	dir = filepath.Clean(dir)
	aside := FreeName(dir+DamagedInfix, now)
	return aside, os.Rename(dir, aside)
}

// FreeName appends a time to prefix, and a number where that is taken: two within a second, and a rename would fail on a
// folder that is not empty.
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

// MoveFilesAside moves the store's files out of a damaged directory into a new one, "<dir>.damaged-<UTC time>", and returns
// its name: what else is in the directory, other stores among it, stays. It deletes nothing. No store may be open on dir.
//
// The markers go first. A directory that has tables or a manifest and no marker of it is a damaged store to Dir.Inspect, so
// that a process which ends half-way moves the rest with its next start. The logs go next, since no store may take up what
// is left of them.
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
