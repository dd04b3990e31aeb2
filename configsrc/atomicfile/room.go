package atomicfile

import "fmt"

// What API writes leave free on the config folder's file system: an editor that saves onto a full disk truncates the
// file, and git stops half-way. On a small file system it is a tenth.
const (
	keptBytes  = 16 << 20
	keptInodes = 64
	keptShare  = 10
)

// A Room is the size of a file system, and its free space for users other than root.
type Room struct {
	Bytes, FreeBytes   uint64
	Inodes, FreeInodes uint64 // 0 inodes: they are allocated on demand
}

// Low names the resource that is too low for API writes, "" if there is enough.
func (r Room) Low() string { return r.low(keptBytes, keptShare, 0) }

// low names the resource that is too low, "" if there is enough: keptBytes must stay free, or a share of a smaller file
// system, and at least extra bytes.
func (r Room) low(keptBytes, share, extra uint64) string {
	if keep := min(keptBytes, r.Bytes/share) + extra; r.FreeBytes < keep {
		return fmt.Sprintf("%d kB free, %d kB are kept", r.FreeBytes/1000, keep/1000)
	}
	if keep := min(keptInodes, r.Inodes/keptShare); r.FreeInodes < keep {
		return fmt.Sprintf("%d inodes free, %d are kept", r.FreeInodes, keep)
	}
	return ""
}

// LowDisk names the resource that is too low on a folder's file system, if keep bytes, or a quarter of a smaller one,
// and extra bytes are to stay free; "" if there is enough, or the file system does not tell.
func LowDisk(dir string, keep, extra uint64) string {
	room, err := RoomOf(dir)
	if err != nil {
		return ""
	}
	return room.low(keep, 4, extra)
}
