//go:build !linux

package atomicfile

import (
	"errors"
	"io"
	"os"
)

// Exchange is impossible on this system.
func (OSDisk) Exchange(a, b string) error { return errors.ErrUnsupported }

func exchangeAt(*os.File, string, *os.File, string) error { return errors.ErrUnsupported }

// Lock marks a running write in the folder; it has no effect here.
func Lock(dir string) (io.Closer, error) { return os.Open(dir) }

// claimFolder keeps writers out of a folder; this system cannot.
func claimFolder(string) (io.Closer, error) { return nil, errors.ErrUnsupported }
