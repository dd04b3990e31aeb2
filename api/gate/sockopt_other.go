//go:build !linux

package gate

import (
	"net"
	"time"
)

// setUnackedTimeout does nothing here: the system's own limit applies.
func setUnackedTimeout(net.Conn, time.Duration) {}
