package atomicfile

import (
	"crypto/sha256"
	"errors"
)

// holdAs holds a file that has the content with the hash want. ErrChanged: it has another, or somebody is writing it.
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

// nobodyWrites reports whether nobody is known to have a file open for writing; false if the system does not tell.
func nobodyWrites(name string) bool {
	h, err := holdStill(name)
	if err == nil {
		h.Close()
	}
	return err == nil
}

// canAsk returns an *UnfitError where the kernel would not tell about writers of target, for which temp, a file of
// the same owner, is the new content.
func canAsk(temp, target string) error {
	h, err := holdStill(temp)
	if err == nil {
		h.Close()
	}
	if unfit, is := errors.AsType[*UnfitError](err); is {
		return unknownWriter(target, unfit.Why)
	}
	return nil // nobody but a process that is just being started can have temp open
}
