package configsrc

import (
	"io/fs"
	"syscall"
	"time"
)

// changed is when an inode was changed last.
func changed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}
