package gate

import (
	"net"
	"syscall"
	"time"
)

// setUnackedTimeout gives a TCP peer up that has not acknowledged, or not taken, what was sent for so long. The system's
// own patience is a quarter of an hour.
func setUnackedTimeout(c net.Conn, d time.Duration) {
	const tcpUserTimeout = 18 // TCP_USER_TIMEOUT, RFC 5482, in milliseconds
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	// Where it fails, a dead peer is found later.
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
}
