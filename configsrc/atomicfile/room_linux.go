package atomicfile

import "golang.org/x/sys/unix"

// RoomOf measures the file system of dir.
func RoomOf(dir string) (Room, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Room{}, err
	}
	unit := uint64(st.Frsize)
	return Room{Bytes: st.Blocks * unit, FreeBytes: st.Bavail * unit, Inodes: st.Files, FreeInodes: st.Ffree}, nil
}
