package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// A wire is one connection. Only the goroutine that drives the load touches it.
type wire struct {
	fd       int
	index    int
	busy     bool          // a question is in flight
	due      time.Duration // when it ought to have been sent
	question question
	out      []byte
	in       []byte // the part of the answer that has arrived
}

// A poller waits for many connections in one thread: a goroutine per connection would cost the load as much CPU as the
// server, and hide what the server costs.
type poller struct {
	epoll  int
	addr   syscall.SockaddrInet4
	wires  []wire
	events []syscall.EpollEvent
	ready  []*wire
}

func newPoller(addr string, connections int) (*poller, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil || !ap.Addr().Is4() {
		return nil, fmt.Errorf("%q is not an IPv4 address with a port", addr)
	}
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	p := &poller{
		epoll:  epoll,
		addr:   syscall.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()},
		wires:  make([]wire, connections),
		events: make([]syscall.EpollEvent, connections),
		ready:  make([]*wire, 0, connections),
	}
	for i := range p.wires {
		p.wires[i] = wire{fd: -1, index: i, out: make([]byte, 0, maxRequest), in: make([]byte, 0, maxAnswer)}
	}
	for i := range p.wires {
		if err := p.open(&p.wires[i]); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func (p *poller) open(w *wire) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	w.fd, w.in = fd, w.in[:0]
	if err := syscall.Connect(fd, &p.addr); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return err
	}
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		return err
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP, Fd: int32(w.index)}
	return syscall.EpollCtl(p.epoll, syscall.EPOLL_CTL_ADD, fd, &event)
}

func (p *poller) reopen(w *wire) error {
	syscall.Close(w.fd)
	w.fd = -1
	return p.open(w)
}

func (p *poller) close() {
	for i := range p.wires {
		if p.wires[i].fd >= 0 {
			syscall.Close(p.wires[i].fd)
		}
	}
	syscall.Close(p.epoll)
}

// wait returns the readable connections; the slice is valid until the next call. epoll_pwait2 waits in nanoseconds;
// epoll_wait's milliseconds are too coarse for thousands of questions a second.
func (p *poller) wait(d time.Duration) ([]*wire, error) {
	const epollPwait2 = 441 // the same number on every architecture
	timeout := syscall.NsecToTimespec(int64(d))
	n, _, errno := syscall.Syscall6(epollPwait2, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(unsafe.Pointer(&timeout)), 0, 0)
	if errno == syscall.EINTR {
		return nil, nil
	}
	if errno != 0 {
		return nil, fmt.Errorf("epoll_pwait2: %w", errno)
	}
	p.ready = p.ready[:0]
	for _, e := range p.events[:n] {
		p.ready = append(p.ready, &p.wires[e.Fd])
	}
	return p.ready, nil
}

var errShortWrite = errors.New("the socket took only part of a request")

// write and read use raw calls: the sockets are non-blocking, so the scheduler need not know.
func (w *wire) write() error {
	n, errno := w.call(syscall.SYS_WRITE, w.out)
	switch {
	case errno != 0:
		return errno
	case n != len(w.out):
		return errShortWrite
	}
	return nil
}

func (w *wire) read() error {
	n, errno := w.call(syscall.SYS_READ, w.in[len(w.in):cap(w.in)])
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return nil
	case errno != 0:
		return errno
	case n == 0:
		return io.EOF
	}
	w.in = w.in[:len(w.in)+n]
	return nil
}

func (w *wire) call(trap uintptr, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(trap, uintptr(w.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

// pinThread locks the goroutine to its thread, and asks the kernel to wake that thread on time. By default the kernel
// may wake it 50 µs late, which would count as the server's latency.
func pinThread() (release func()) {
	const setTimerSlack = 29
	runtime.LockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
	return func() {
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 0, 0) // 0: the default again
		runtime.UnlockOSThread()
	}
}
