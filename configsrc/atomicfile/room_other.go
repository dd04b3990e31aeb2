//go:build !linux

package atomicfile

import "errors"

// RoomOf is not known here: what the disk refuses, the write itself reports.
func RoomOf(string) (Room, error) { return Room{}, errors.ErrUnsupported }
