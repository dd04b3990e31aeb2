//go:build !linux

package configsrc

import "errors"

// roomOf is not known here: what the disk refuses, the write itself reports.
func roomOf(string) (Room, error) { return Room{}, errors.ErrUnsupported }
