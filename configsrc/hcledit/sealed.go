package hcledit

import (
	"bytes"
	"fmt"
)

// ReplaceSealed puts another sealed text in the place of one, wherever the file has it. No other byte changes.
func ReplaceSealed(src []byte, old, now string) ([]byte, error) {
	if !bytes.Contains(src, []byte(old)) { // written with escapes, which base64 never needs
		return nil, fmt.Errorf("%w: a sealed value has escapes", ErrVerify)
	}
	return bytes.ReplaceAll(src, []byte(old), []byte(now)), nil
}
