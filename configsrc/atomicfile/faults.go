package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// ErrChanged: the file was saved since it was read, or is being written.
var ErrChanged = errors.New("the file was changed by somebody else at the same time")

// errStranded: a save that came in between could not be put back. It is in the temporary file, which must stay until
// Clear restores it.
var errStranded = errors.New("the save will be put back as soon as the disk allows it")

// ErrLocked: another process holds a lock on the folder that keeps writers out.
var ErrLocked = errors.New("another process keeps the folder locked")

// An UnfitError is the reason why a file cannot be written, independent of its content.
type UnfitError struct {
	Path, Why     string
	unknownWriter bool // the system cannot tell whether the file is being written, or cannot keep such a save
}

func (e *UnfitError) Error() string { return "edit " + e.Path + ": " + e.Why }

func unknownWriter(name, why string) error {
	return &UnfitError{Path: filepath.Base(name), Why: why, unknownWriter: true}
}

func isUnknownWriter(err error) bool {
	unfit, is := errors.AsType[*UnfitError](err)
	return is && unfit.unknownWriter
}

// A Fault is a step of a write that the system has refused. The files are unchanged.
type Fault struct {
	Step string // such as "replace a.hcl"
	Err  error
}

func (f *Fault) Error() string { return f.Step + ": " + f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// diskFaults are errors of the machine rather than of a file: the disk or the network behind it fails, or a resource
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

// Cause strips the paths that os puts into its errors: messages name the file already, relative to the config folder,
// and clients must not learn where that is.
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
