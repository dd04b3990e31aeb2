package atomicfile

import "crypto/sha256"

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
