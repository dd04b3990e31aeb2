package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"fingerpost/api"
)

// listen binds the address of a flag. An invalid address is wrong usage.
func listen(flag, addr string) (net.Listener, error) {
	var tcp *net.TCPAddr
	if !strings.HasPrefix(addr, "unix:") {
		var err error
		if tcp, err = net.ResolveTCPAddr("tcp", addr); err != nil {
			return nil, badAddress(flag, addr, err)
		}
	}
	ln, err := api.Listen(addr)
	if err == nil {
		return ln, nil
	}
	if tcp != nil && errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--%s %s: the address is in use%s; end that process, or give another address with --%s", flag, addr, holder(tcp.IP, tcp.Port), flag)
	}
	return nil, fmt.Errorf("--%s: %w", flag, err)
}

// badAddress distinguishes an address that can never work from a name that cannot be looked up now.
func badAddress(flag, addr string, err error) error {
	var malformed *net.AddrError
	if errors.As(err, &malformed) {
		return usage("--%s %q: %s; give HOST:PORT, such as 127.0.0.1:8080", flag, addr, malformed.Err)
	}
	return fmt.Errorf("--%s %q: %w", flag, addr, err)
}
