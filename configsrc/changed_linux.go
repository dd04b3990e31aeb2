package configsrc

import (
	"io/fs"
	"syscall"
	"time"
)

// changed returns the time of the inode's last change.
func changed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}
