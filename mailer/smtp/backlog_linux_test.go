package smtp_test

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"fingerpost/mailer/smtp"
)

// TestConnectTimeout is the row of that name.
func TestConnectTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it waits twice for a limit")
	}
	t.Parallel()
	full := newFullBacklog(t)
	tr := newTestTransport(t, smtp.TransportOptions{Limits: smtp.Limits{Connect: short}})
	out := tr.Send(t.Context(), smtp.Server{Host: "127.0.0.1", Port: full}, testEnvelope, testMessage)
	row{class: smtp.Temporary, stage: smtp.StageDial, code: smtp.CodeConnectTimeout, fields: "host"}.compare(t, out)
}

// newFullBacklog returns a loopback port where connections are neither accepted nor refused.
func newFullBacklog(t *testing.T) (port int) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port = name.(*syscall.SockaddrInet4).Port
	for range 64 {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), short)
		if err != nil {
			return port
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Skip("this system takes connections beyond the backlog")
	return 0
}
