//go:build !linux

package atomicfile

import (
	"crypto/sha256"
	"os"
)

type hold struct{ *os.File }

// holdStill needs a system that reports whether a file is open for writing.
func holdStill(name string) (*hold, error) {
	return nil, unknownWriter(name, "this system does not tell whether an editor is writing it: run the service on Linux")
}

func (*hold) check(Disk, string, [sha256.Size]byte) error { return ErrChanged }

// keepAttributes does nothing: package unix has no portable calls.
func keepAttributes(name, like string) error { return nil }
