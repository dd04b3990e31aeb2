package gate

import (
	"net"
	"syscall"
	"time"
)

// setUnackedTimeout closes a TCP connection whose peer has not acknowledged sent data for d. The system's own limit is
// a quarter of an hour.
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
	// If it fails, a dead peer is found later.
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
}
