package pebblefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The errors of Open, Apply, of reads and Err; test with errors.Is.
var (
	// ErrLocked: another process has the directory open, see LockedError.
	ErrLocked = errors.New("the data directory is in use")
	// ErrUnavailable: the disk refuses (full, read-only, I/O error, no permission, directory gone). The existing data may
	// be good. A store that returned it never writes again.
	ErrUnavailable = errors.New("the data directory cannot be used")
	// ErrDamaged: the disk works, but its content is no valid store. See MoveAside.
	ErrDamaged = errors.New("the data directory is damaged")
	// ErrNewer: a later release wrote the directory. Nothing was changed.
	ErrNewer = errors.New("the data directory was written by a newer fingerpost")
	// ErrOlder: a build before the first release wrote the directory. Nothing was changed.
	ErrOlder = errors.New("the data directory was written by an older fingerpost")
	// ErrNoStore: a directory to be opened read-only holds no store, or does not exist.
	ErrNoStore = errors.New("there is no store in it")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("the store is closed")
)

// A LockedError names the process that holds the data directory. It is an ErrLocked.
type LockedError struct {
	Dir string
	PID int // 0 if unknown
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("open %s: another process has it", e.Dir)
	}
	return fmt.Sprintf("open %s: process %d has it", e.Dir, e.PID)
}

// Is makes a LockedError an ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// CheckFormat refuses a directory of another release's format: it has the version has, and this release reads the
// version reads. What names the format.
func (d *Dir) CheckFormat(what string, has, reads uint64) error {
	switch {
	case has > reads:
		return fmt.Errorf("open %s: %w (%s %d, this release reads %d); nothing was changed: start the newer release again. "+
			"To go back, first copy the data folder with \"fingerpost backup\" of the newer release, then restore a backup "+
			"that this release made (\"fingerpost restore --force\"), or %s", d.Path, ErrNewer, what, has, reads, d.StartEmpty)
	case has < reads:
		return fmt.Errorf("open %s: %w (%s %d, this release reads %d); nothing was changed: %s", d.Path, ErrOlder, what, has,
			reads, d.StartEmpty)
	}
	return nil
}

// Final reports whether err says all that there is to say about the directory, and neither the disk nor time can mend it:
// another process or another release has it.
func Final(err error) bool {
	return errors.Is(err, ErrLocked) || errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder)
}

// Refused reports whether err is a system error about the disk, its permissions or the process's limits, as opposed to
// wrong content.
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

// Classify turns a failure of Pebble into one of these errors. missing says that the directory itself is gone.
func Classify(err error, missing bool) error {
	switch {
	case err == nil, errors.Is(err, ErrUnavailable), errors.Is(err, ErrDamaged), errors.Is(err, ErrNoStore), Final(err):
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
