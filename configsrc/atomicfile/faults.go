package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// ErrChanged: somebody else has saved the file since it was read, or is writing it.
var ErrChanged = errors.New("the file was changed by somebody else at the same time")

// errStranded: a save that came in between could not be put back. It is in the temporary file, which must stay until
// Clear gives it back.
var errStranded = errors.New("the save will be put back as soon as the disk allows it")

// ErrLocked: somebody holds a lock on the folder that keeps writers out.
var ErrLocked = errors.New("another process keeps the folder locked")

// An UnfitError says why a file is not written to, whatever its content is.
type UnfitError struct {
	Path, Why     string
	unknownWriter bool // the system cannot tell whether somebody is writing the file, or cannot keep such a save
}

func (e *UnfitError) Error() string { return "edit " + e.Path + ": " + e.Why }

func unknownWriter(name, why string) error {
	return &UnfitError{Path: filepath.Base(name), Why: why, unknownWriter: true}
}

func isUnknownWriter(err error) bool {
	unfit, is := errors.AsType[*UnfitError](err)
	return is && unfit.unknownWriter
}

// A Fault is a step of a write that the system has refused. The files are as they were.
type Fault struct {
	Step string // such as "replace a.hcl"
	Err  error
}

func (f *Fault) Error() string { return f.Step + ": " + f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// diskFaults say nothing of the files and everything of the machine: the disk or the network behind it fails, or something
// has run out. A later try may succeed.
var diskFaults = []error{
	syscall.EIO, syscall.ENXIO, syscall.ENODEV, syscall.EBADMSG, syscall.ENODATA,
	syscall.ESTALE, syscall.ETIMEDOUT, syscall.ENOTCONN, syscall.EHOSTDOWN,
	syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
}

// IsDiskFault reports whether the machine is at fault for err, and not the file.
func IsDiskFault(err error) bool {
	return slices.ContainsFunc(diskFaults, func(fault error) bool { return errors.Is(err, fault) })
}

// Cause strips the paths that os puts into its errors: messages name the file already, relative to the config folder, and
// callers must not hear where that is.
func Cause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}
