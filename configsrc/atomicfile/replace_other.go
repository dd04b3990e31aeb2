//go:build !linux

package atomicfile

import (
	"errors"
	"io"
	"os"
)

// exchangeNames exchanges two files atomically, where the system can.
func exchangeNames(a, b string) error { return errors.ErrUnsupported }

// Lock says that a write is under way in the folder, where that can be said.
func Lock(dir string) (io.Closer, error) { return os.Open(dir) }

// claimFolder keeps writers out of a folder, where that is possible.
func claimFolder(string) (io.Closer, error) { return nil, errors.ErrUnsupported }
