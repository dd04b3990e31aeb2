//go:build !linux

package configsrc

import "errors"

// RoomOf is not known here: what the disk refuses, the write itself reports.
func RoomOf(string) (Room, error) { return Room{}, errors.ErrUnsupported }
