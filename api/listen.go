package api

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Listen opens addr, which is "host:port" for TCP or "unix:/path". It replaces a socket that a dead process has left
// behind; a socket that a process answers on, and any other kind of file, is an error.
func Listen(addr string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(addr, "unix:")
	if !isUnix {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		return ln, nil
	}
	if path == "" { // the system would choose a name that no client knows
		return nil, errors.New(`listen: "unix:" needs a path`)
	}
	if err := removeStaleSocket(path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	// The address is a credential on some listeners, so it is for the service's user and group, whatever the umask.
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), ln.Close())
	}
	return ln, nil
}

func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("a file that is no socket stands there")
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return errors.New("another process answers there")
	}
	// Only a refused connection proves that no process listens: a full queue or a missing permission does not.
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}
