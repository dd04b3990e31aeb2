//go:build !linux

package atomicfile

import "crypto/sha256"

type hold struct{}

// holdStill is for systems that tell whether somebody has a file open for writing.
func holdStill(name string) (*hold, error) {
	return nil, unknownWriter(name, "this system does not tell whether an editor is writing it: run the service on Linux")
}

func (*hold) check(Disk, string, [sha256.Size]byte) error { return ErrChanged }
func (*hold) Close() error                                { return nil }

// keepAttributes keeps none: package unix has no calls for all systems.
func keepAttributes(name, like string) error { return nil }
