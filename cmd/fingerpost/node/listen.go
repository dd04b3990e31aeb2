package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"fingerpost/api"
)

// An address is what a flag says about where to listen; it may be empty.
type address struct{ flag, addr string }

func (o *Options) addresses() []address {
	return []address{{"ops-listen", o.Listen.Ops}, {"gate-listen", o.Listen.Gate}, {"mail-listen", o.Listen.Mail},
		{"console-listen", o.Listen.Console}, {"listen", o.Listen.API}, {"cluster-listen", o.Cluster.Listen}}
}

// CheckListen returns everything that is wrong with the form of the addresses.
func (o *Options) CheckListen() (bad []string) {
	for _, a := range o.addresses() {
		if _, err := a.parse(); errors.As(err, new(AddressError)) {
			bad = append(bad, err.Error())
		}
	}
	return bad
}

// TryAddresses opens and closes the TCP ports that the node would listen on, and returns everything that is in the way.
// Sockets of the file system are looked at only.
func (o *Options) TryAddresses() (problems []error) {
	for _, a := range o.addresses() {
		path, isUnix := strings.CutPrefix(a.addr, "unix:")
		switch {
		case a.addr == "":
		case isUnix:
			if err := checkSocket(path); err != nil {
				problems = append(problems, fmt.Errorf("--%s %s: %w", a.flag, a.addr, err))
			}
		default:
			ln, err := listen(a.flag, a.addr)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			defer ln.Close() // at the end: two flags with the same address are in each other's way
		}
	}
	return problems
}

// checkSocket says what would keep a node from listening on a path.
func checkSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		const writeAndSearch = 2 | 1 // access(2)
		if err := syscall.Access(filepath.Dir(path), writeAndSearch); err != nil {
			return &fs.PathError{Op: "make a socket in", Path: filepath.Dir(path), Err: err}
		}
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("a file that is no socket stands there")
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return errors.New("another process answers there")
	}
	return nil
}

// bind binds all addresses of the node, but for those whose sockets the service manager has opened.
func (n *service) bind(context.Context) (err error) {
	in, err := n.o.inherit()
	if err != nil {
		return err
	}
	bound := func(flag, addr string) (list []net.Listener, own bool, err error) {
		if list = in[flag]; len(list) > 0 {
			delete(in, flag)
			return list, true, nil
		}
		ln, err := listen(flag, addr)
		return []net.Listener{ln}, false, err
	}
	defer in.close() // those that were not taken, after an error
	if n.opsListeners, _, err = bound("ops-listen", n.o.Listen.Ops); err != nil {
		n.opsListeners = nil
		return err
	}
	add := func(flag, addr string, services api.Services) error {
		list, own, err := bound(flag, addr)
		for _, ln := range list {
			if err == nil {
				n.listeners = append(n.listeners, boundListener{ln, services, own})
			}
		}
		return err
	}
	separate := func(flag, addr string) bool { return addr != "" || len(in[flag]) > 0 }
	if separate("gate-listen", n.o.Listen.Gate) {
		if err := add("gate-listen", n.o.Listen.Gate, api.Gateway); err != nil {
			return err
		}
	}
	services := api.Platform | api.Mail
	if separate("mail-listen", n.o.Listen.Mail) {
		services = api.Platform
		if err := add("mail-listen", n.o.Listen.Mail, api.Mail); err != nil {
			return err
		}
	}
	switch {
	case separate("console-listen", n.o.Listen.Console):
		if err := add("console-listen", n.o.Listen.Console, api.Console); err != nil {
			return err
		}
	case n.o.Console.On:
		services |= api.Console
	}
	return add("listen", n.o.Listen.API, services)
}

// An AddressError reports an address that is none.
type AddressError struct{ error }

// parse looks the address of a flag up; nil: it is none of TCP. An invalid address is an AddressError; a name that cannot
// be looked up now is not.
func (a address) parse() (*net.TCPAddr, error) {
	if a.addr == "" || strings.HasPrefix(a.addr, "unix:") {
		return nil, nil
	}
	var malformed *net.AddrError
	tcp, err := net.ResolveTCPAddr("tcp", a.addr)
	if errors.As(err, &malformed) {
		return nil, AddressError{fmt.Errorf("--%s %q: %s; give HOST:PORT, such as 127.0.0.1:8080", a.flag, a.addr,
			malformed.Err)}
	}
	if err != nil {
		return nil, fmt.Errorf("--%s %q: %w", a.flag, a.addr, err)
	}
	return tcp, nil
}

// listen binds the address of a flag.
func listen(flag, addr string) (net.Listener, error) {
	tcp, err := address{flag, addr}.parse()
	if err != nil {
		return nil, err
	}
	ln, err := api.Listen(addr)
	if tcp != nil && errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--%s %s: the address is in use%s; end that process, or give another address with --%s", flag,
			addr, holder(tcp.IP, tcp.Port), flag)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return ln, nil
}

// BeyondLoopback reports whether other machines can reach an address. listen reports those that cannot be looked up.
func BeyondLoopback(addr string) bool {
	if strings.HasPrefix(addr, "unix:") {
		return false
	}
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	return err == nil && !tcp.IP.IsLoopback()
}

// holder names the process that listens on a TCP port of an address, as " by nginx (pid 4711)". It returns "" if the
// system does not show it, as for processes of other users, or has no proc(5).
func holder(ip net.IP, port int) string {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, _ := os.ReadFile(table)
		for line := range strings.Lines(string(raw)) {
			// sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode (proc(5))
			f := strings.Fields(line)
			const listening = "0A"
			if len(f) < 10 || f[3] != listening {
				continue
			}
			address, hexPort, _ := strings.Cut(f[1], ":")
			everywhere := strings.Trim(address, "0") == "" || ip == nil || ip.IsUnspecified()
			if hexPort == fmt.Sprintf("%04X", port) && (everywhere || address == procAddress(ip)) {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && inodes[target] {
			pid := strings.Split(fd, "/")[2]
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			return fmt.Sprintf(" by %s (pid %s)", strings.TrimSpace(string(name)), pid)
		}
	}
	return ""
}

// procAddress returns an address as proc(5) writes it: hexadecimal, each group of four bytes in the machine's order,
// which is little-endian on every platform that fingerpost is built for.
func procAddress(ip net.IP) string {
	raw := []byte(ip.To4())
	if raw == nil {
		raw = ip
	}
	text := ""
	for group := range slices.Chunk(raw, 4) {
		text += fmt.Sprintf("%08X", binary.LittleEndian.Uint32(group))
	}
	return text
}
