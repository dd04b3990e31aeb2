package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
)

// inherited are the listening sockets that the process has got from its service manager, by the flag that they stand for,
// as sd_listen_fds(3) has it: systemd keeps them open while the service restarts, so that connections wait in the kernel.
type inherited map[string][]net.Listener

// socketFlags are the names of such sockets (FileDescriptorName= of the socket unit), and the flags that they stand for.
var socketFlags = []struct{ name, flag string }{
	{"main", "listen"}, {"gate", "gate-listen"}, {"mail", "mail-listen"}, {"console", "console-listen"},
	{"ops", "ops-listen"},
}

// inherit takes the sockets of the service manager. All that is wrong with them is one AddressError.
func (o *Options) inherit() (in inherited, err error) {
	in = inherited{}
	var bad []error
	for _, f := range activation.Files(true) {
		ln, flag, err := inheritOne(f)
		f.Close() // ln has a copy
		if err != nil {
			bad = append(bad, err)
			continue
		}
		in[flag] = append(in[flag], ln)
	}
	for flag, list := range in {
		a := address{flag, o.given(flag)}
		if a.addr == "" {
			continue
		}
		same := func(ln net.Listener) bool { return a.is(ln.Addr()) }
		if !slices.ContainsFunc(list, same) {
			bad = append(bad, fmt.Errorf("--%s is %s, and the socket from the service manager is %s: leave the flag out, or "+
				"change the socket unit", flag, a.addr, list[0].Addr()))
		}
	}
	if len(in["console-listen"]) > 0 && !o.Console.On {
		bad = append(bad, errors.New("there is a socket \"console\" from the service manager, and --console=false: leave "+
			"one of the two out"))
	}
	if len(bad) == 0 {
		return in, nil
	}
	in.close()
	slices.SortFunc(bad, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return nil, AddressError{errors.Join(bad...)}
}

// inheritOne makes a listener of a socket, with the flag that it stands for.
func inheritOne(f *os.File) (ln net.Listener, flag string, err error) {
	i := slices.IndexFunc(socketFlags, func(s struct{ name, flag string }) bool { return s.name == f.Name() })
	if i < 0 {
		var names []string
		for _, s := range socketFlags {
			names = append(names, s.name)
		}
		return nil, "", fmt.Errorf("a socket from the service manager has the name %q; FileDescriptorName must be one of %s",
			f.Name(), strings.Join(names, ", "))
	}
	accepts, err := syscall.GetsockoptInt(int(f.Fd()), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
	if err == nil && accepts == 0 {
		err = errors.New("it does not listen; the socket unit needs ListenStream=, and Accept=no")
	}
	if err == nil {
		ln, err = net.FileListener(f)
	}
	if err != nil {
		return nil, "", fmt.Errorf("the socket %q from the service manager cannot be used: %w", f.Name(), err)
	}
	return ln, socketFlags[i].flag, nil
}

// given returns the address that a flag has been given, "" if it has its default.
func (o *Options) given(flag string) string {
	if o.Listen.Given == nil || !o.Listen.Given(flag) {
		return ""
	}
	i := slices.IndexFunc(o.addresses(), func(a address) bool { return a.flag == flag })
	return o.addresses()[i].addr
}

// is reports whether the address of a flag is that of a listener.
func (a address) is(of net.Addr) bool {
	if path, isUnix := strings.CutPrefix(a.addr, "unix:"); isUnix {
		return of.Network() == "unix" && of.String() == path
	}
	want, err := a.parse()
	is, isTCP := of.(*net.TCPAddr)
	if err != nil || want == nil || !isTCP || want.Port != is.Port {
		return false
	}
	everywhere := want.IP == nil || want.IP.IsUnspecified()
	return want.IP.Equal(is.IP) || everywhere && is.IP.IsUnspecified()
}

// close closes the sockets of this process. The service manager goes on listening.
func (in inherited) close() {
	for _, list := range in {
		for _, ln := range list {
			ln.Close()
		}
	}
}
