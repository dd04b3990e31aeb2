package configsrc

import (
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

// checkRoom refuses a write if the disk is nearly full, and updates the status. A file system that does not report its
// free space passes: the write itself reports a refusal.
func (s *Source) checkRoom() error {
	measure := s.o.Room
	if measure == nil {
		measure = atomicfile.RoomOf
	}
	low := ""
	if room, err := measure(s.o.Dir); err == nil {
		if low = room.Low(); low != "" {
			low += " for people's saves and git"
		}
	}
	s.mu.Lock()
	before := s.status.LowDisk
	s.status.LowDisk = low
	s.mu.Unlock()
	switch {
	case low != "" && before == "":
		s.o.Logger.Warn("too little room on the disk of the config folder: API writes are refused, all else goes on", "room", low)
	case low == "" && before != "":
		s.o.Logger.Info("the disk of the config folder has room again: API writes go on")
	}
	if low == "" {
		return nil
	}
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: "too little room on the disk of the config folder: " + low}
}
