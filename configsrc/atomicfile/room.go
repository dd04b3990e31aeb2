package atomicfile

import "fmt"

// What stays free of a file system's inodes; of a small one a tenth.
const (
	keptInodes      = 64
	keptInodesShare = 10
)

// A Room is the size of a file system, and its free space for users other than root.
type Room struct {
	Bytes, FreeBytes   uint64
	Inodes, FreeInodes uint64 // 0 inodes: they are allocated on demand
}

// Low names the resource that is too low, "" if there is enough: kept bytes must stay free, or one in share of a
// smaller file system, and extra bytes.
func (r Room) Low(kept, share, extra uint64) string {
	if keep := min(kept, r.Bytes/share) + extra; r.FreeBytes < keep {
		return fmt.Sprintf("%d kB free, %d kB are kept", r.FreeBytes/1000, keep/1000)
	}
	if keep := min(keptInodes, r.Inodes/keptInodesShare); r.FreeInodes < keep {
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
	return room.Low(keep, 4, extra)
}
