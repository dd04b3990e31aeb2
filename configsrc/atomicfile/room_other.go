//go:build !linux

package atomicfile

import "errors"

// RoomOf is not implemented here: a write reports a full disk itself.
func RoomOf(string) (Room, error) { return Room{}, errors.ErrUnsupported }
