//go:build !linux

package gate

import "net"

// newRawConn returns c: raw system calls are for Linux only.
func newRawConn(c net.Conn) net.Conn { return c }
