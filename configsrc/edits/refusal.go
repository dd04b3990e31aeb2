package edits

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// The errors of refused writes (api/README.md, Errors). Files are named relative to the config folder, because an
// answer must not reveal where that is on the machine. A key that is limited to projects does not learn what the files
// contain beyond its own projects: neither the owner of a taken name, nor what is wrong in a line of a file, which may
// be another project's.

// invalidFile says that a file has to be repaired before it can be written.
func (s *Base) invalidFile(ds hclfile.Diagnostics, covers catalog.Coverage) *catalog.Error {
	e := &catalog.Error{Code: catalog.CodeFileInvalid, Message: "the config file is invalid; repair it first"}
	for _, d := range ds {
		if d.Severity == hclfile.Error {
			e.Message = "the config file is invalid, repair it first: " + s.positionOf(d)
			if covers == nil {
				e.Message += ": " + s.relative(d.Summary)
			}
			break
		}
	}
	return e
}

// wouldBreak says that no file can hold the requested content, such as a text that is too large. The problem is in the
// client's content, so a limited key learns of it, too.
func (s *Base) wouldBreak(ds hclfile.Diagnostics, covers catalog.Coverage) *catalog.Error {
	e := &catalog.Error{Code: catalog.CodeFileInvalid, Message: "the config file would be invalid with this change"}
	for _, d := range ds {
		if d.Severity == hclfile.Error {
			e.Message = "the config file would be invalid with this change: " + s.positionOf(d) + ": " + s.relative(d.Summary)
			if covers == nil {
				e.Message += ": " + s.relative(d.Detail)
			}
			break
		}
	}
	return e
}

// positionOf returns the position of a diagnostic, relative to the config folder.
func (s *Base) positionOf(d hclfile.Diagnostic) string {
	if d.Start.Line == 0 { // the file as a whole
		return s.relative(d.File)
	}
	return fmt.Sprintf("%s:%d:%d", s.relative(d.File), d.Start.Line, d.Start.Column)
}

// relative removes the config folder from the paths in a text, where display put it.
func (s *Base) relative(text string) string {
	return strings.ReplaceAll(text, filepath.Clean(s.o.Dir)+string(filepath.Separator), "")
}

// tooMuch is the advice for a text that a config file cannot hold (hcledit.ErrLimit).
const tooMuch = "the file has at most 1 MiB, and this change has more than there is room for once it is written " +
	"with its escapes: " +
	`give long mail bodies files of their own, as in body_html = file("mail/welcome.html"), and save them again`

// namedFault is writeFault for a file that a config file names. It may be a file of another project, so its name is left
// out.
func namedFault(err error) error { return WriteFault("read a file that the config file names", err) }

// WriteFault returns the client's error for a failed system call. The original files are unchanged.
func WriteFault(step string, err error) error {
	var unfit *atomicfile.UnfitError
	var known *catalog.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &unfit):
		return &catalog.Error{Code: catalog.CodeReadOnly, Message: unfit.Path + " cannot be written: " + unfit.Why}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return &catalog.Error{Code: catalog.CodeReadOnly, Message: step + ": the config folder cannot be written: " +
			atomicfile.Cause(err).Error()}
	case atomicfile.IsDiskFault(err):
		return &catalog.Error{Code: catalog.CodeUnavailable, Message: step + ": " + atomicfile.Cause(err).Error()}
	case errors.Is(err, folder.ErrKeepsChanging):
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: step + ": the file " + err.Error() +
			"; try again in a moment"}
	case errors.Is(err, fs.ErrNotExist):
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: step +
			": the file is gone; try again when the files have been reloaded"}
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err,
		folder.ErrLeadsOut):
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: step +
			": something else has taken the file's place; try again when the files have been reloaded"}
	}
	return fmt.Errorf("%s: %w", step, err)
}

// Busy refuses a write for a moment.
func Busy(why string) error {
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: why + "; try again in a moment"}
}
