package atomicfile

import "fmt"

// What API writes leave free on the config folder's file system: an editor that saves onto a full disk cuts the file that
// it had, and git stops half-way. Of a small file system it is a tenth.
const (
	keptBytes  = 16 << 20
	keptInodes = 64
	keptShare  = 10
)

// A Room is what a file system has, and has left for users other than root.
type Room struct {
	Bytes, FreeBytes   uint64
	Inodes, FreeInodes uint64 // 0 inodes: they are made as they are needed
}

// Low says what API writes find too little of, "" where there is enough.
func (r Room) Low() string { return r.low(keptBytes, keptShare, 0) }

// low says what there is too little of, "" where there is enough: so many bytes are to be left, or a share of a smaller file
// system, and in any case as many as extra has.
func (r Room) low(keptBytes, share, extra uint64) string {
	if keep := min(keptBytes, r.Bytes/share) + extra; r.FreeBytes < keep {
		return fmt.Sprintf("%d kB free, %d kB are kept", r.FreeBytes/1000, keep/1000)
	}
	if keep := min(keptInodes, r.Inodes/keptShare); r.FreeInodes < keep {
		return fmt.Sprintf("%d inodes free, %d are kept", r.FreeInodes, keep)
	}
	return ""
}

// LowDisk says what the file system of a folder has too little of, where keep bytes, or a quarter of a smaller one, and extra
// bytes are to be left free; "" where there is enough, or the file system does not tell.
func LowDisk(dir string, keep, extra uint64) string {
	room, err := RoomOf(dir)
	if err != nil {
		return ""
	}
	return room.low(keep, 4, extra)
}
