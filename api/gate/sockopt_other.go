//go:build !linux

package gate

import (
	"net"
	"time"
)

// setUnackedTimeout does nothing here: the system's own patience applies.
func setUnackedTimeout(net.Conn, time.Duration) {}
