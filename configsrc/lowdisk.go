package configsrc

import "fingerpost/resolver/catalog"

// What API writes leave free on the config folder's file system: an editor that saves onto a full disk truncates the
// file, and git stops half-way. On a small file system it is a tenth.
const (
	keptBytes = 16 << 20
	keptShare = 10
)

// checkWritable refuses writes on a node that never writes, and if the disk is nearly full, which the report shows. A
// file system that does not report its free space passes: the write itself reports a refusal.
func (s *base) checkWritable(report *reporter) error {
	if s.o.Follow {
		return &catalog.Error{Code: catalog.CodeReadOnly,
			Message: "this node is an edge: it follows the files of its authority"}
	}
	if s.o.ReadOnly {
		return &catalog.Error{Code: catalog.CodeReadOnly,
			Message: "this node never writes into the config folder (serve --read-only)"}
	}
	low := ""
	if room, err := s.o.Room(s.o.Dir); err == nil {
		if low = room.Low(keptBytes, keptShare, 0); low != "" {
			low += " for people's saves and git"
		}
	}
	report.noteRoom(low)
	if low == "" {
		return nil
	}
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: "too little room on the disk of the config folder: " +
		low}
}
