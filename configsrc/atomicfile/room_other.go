//go:build !linux

package atomicfile

import "errors"

// RoomOf is for Linux only. Elsewhere a full disk is found by the write itself.
func RoomOf(string) (Room, error) { return Room{}, errors.ErrUnsupported }
