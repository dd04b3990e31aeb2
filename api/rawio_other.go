//go:build !linux

package api

import "net"

// A rawIO is there on Linux only; elsewhere connections are read and written the usual way.
type rawIO struct{}

func newRawIO(net.Conn) *rawIO { return nil }

func (*rawIO) read([]byte) (int, error) {
	panic("api: no raw socket here: impossible, newRawIO makes none")
}
func (*rawIO) write([]byte) (int, error) {
	panic("api: no raw socket here: impossible, newRawIO makes none")
}
