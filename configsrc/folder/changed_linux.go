package folder

import (
	"syscall"
	"time"
)

// changed returns the time of the inode's last change.
func changed(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctim.Unix()) }
