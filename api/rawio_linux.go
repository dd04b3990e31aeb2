package api

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A rawIO reads from and writes to a socket without telling Go's scheduler of each system call. The socket never
// blocks, so the call is short and there is nothing to tell; the telling costs more than the rest of Go's part in a
// request. Waiting is the runtime's, with its deadlines, as ever. One goroutine may read while another writes.
type rawIO struct {
	raw      syscall.RawConn
	reading  rawCall
	writing  rawCall
	tryRead  func(fd uintptr) bool // made once: a closure a call would be an allocation
	tryWrite func(fd uintptr) bool
}

// A rawCall is a call under way.
type rawCall struct {
	p     []byte
	n     int
	errno syscall.Errno
}

// newRawIO returns nil for what is no socket of the system's.
func newRawIO(c net.Conn) *rawIO {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	r := &rawIO{raw: raw}
	r.tryRead = func(fd uintptr) bool { return r.reading.try(syscall.SYS_READ, fd) }
	r.tryWrite = func(fd uintptr) bool { return r.writing.tryAll(fd) }
	return r
}

// try makes the call until it is not interrupted; it reports false where the socket is not ready.
func (c *rawCall) try(trap, fd uintptr) bool {
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(c.p))), uintptr(len(c.p)))
		switch errno {
		case 0:
			c.n = int(n)
			return true
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			c.errno = errno
			return true
		}
	}
}

// tryAll writes until all of p is written.
func (c *rawCall) tryAll(fd uintptr) bool {
	for len(c.p) > 0 {
		before := c.n
		if !c.try(syscall.SYS_WRITE, fd) {
			return false
		}
		if c.errno != 0 {
			c.n = before
			return true
		}
		c.p = c.p[c.n:]
		c.n += before
	}
	return true
}

func (r *rawIO) read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r.reading = rawCall{p: p}
	err := r.raw.Read(r.tryRead)
	r.reading.p = nil // the caller's, who may let go of it
	switch n, errno := r.reading.n, r.reading.errno; {
	case err != nil:
		return 0, err
	case errno != 0:
		return 0, os.NewSyscallError("read", errno)
	case n == 0:
		return 0, io.EOF
	default:
		return n, nil
	}
}

func (r *rawIO) write(p []byte) (int, error) {
	r.writing = rawCall{p: p}
	err := r.raw.Write(r.tryWrite)
	n, errno := r.writing.n, r.writing.errno
	r.writing.p = nil
	if err == nil && errno != 0 {
		err = os.NewSyscallError("write", errno)
	}
	return n, err
}
