package atomicfile

import (
	"crypto/sha256"
	"errors"
)

// holdAs holds a file that has the content with the hash want. ErrChanged: the content differs, or a program is writing
// it.
func holdAs(d Disk, name string, want [sha256.Size]byte) (*hold, error) {
	h, err := holdStill(name)
	if err != nil {
		return nil, err
	}
	if err := h.check(d, name, want); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// nobodyWrites reports whether the file is known not to be open for writing; false if the system cannot tell.
func nobodyWrites(name string) bool {
	h, err := holdStill(name)
	if err == nil {
		h.Close()
	}
	return err == nil
}

// canAsk returns an *UnfitError if the kernel would not report the writers of target. temp, a file with the same owner,
// is its new content.
func canAsk(temp, target string) error {
	h, err := holdStill(temp)
	if err == nil {
		h.Close()
	}
	if unfit, is := errors.AsType[*UnfitError](err); is {
		return unknownWriter(target, unfit.Why)
	}
	return nil // only a process that is just being started can have temp open
}
