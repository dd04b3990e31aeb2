package node

import (
	"fmt"
	"io"
	"net"

	"fingerpost/api"
	"fingerpost/api/console"
)

// consoleOptions are what the console shows beyond the answers of the API. nil: there is no console.
func (n *service) consoleOptions() *console.Options {
	if !n.o.Console {
		return nil
	}
	o := &console.Options{Node: console.Node{Config: n.source, Mail: n.mail.mailer}, DemoKey: n.demoKeyInUse,
		GitWeb: n.o.Git.Web, Version: n.o.Build.Version}
	if n.repo != nil {
		o.GitState = n.consoleGit
	}
	return o
}

func (n *service) consoleGit() console.GitState {
	st := n.repo.Status()
	g := console.GitState{Branch: st.Branch, Head: st.Head, Ahead: st.Ahead, Behind: st.Behind, Pending: st.Pending,
		Conflict: st.Conflict, Overruled: st.Overruled}
	for _, e := range []string{st.CommitError, st.SyncError} {
		if e != "" {
			g.Errors = append(g.Errors, e)
		}
	}
	return g
}

// demoKeyInUse returns the demo key if it is declared and not refused, else "".
func (n *service) demoKeyInUse() string {
	if n.demoDeclared() && n.blockedKeys() == nil {
		return DemoKey
	}
	return ""
}

// consoleLine prints where the console is.
func (n *service) consoleLine(out io.Writer) {
	for _, l := range n.listeners {
		if l.services&api.Console == 0 {
			continue
		}
		if a := l.Addr(); a.Network() != "unix" {
			fmt.Fprintf(out, "console on %s%s\n", n.baseURL(reachable(a)), console.Prefix)
		} else {
			fmt.Fprintf(out, "console on %s, at %s\n", n.baseURL(a), console.Prefix)
		}
	}
}

// reachable returns an address that a browser on this machine can open: the one that means all addresses is none.
func reachable(a net.Addr) net.Addr {
	tcp, is := a.(*net.TCPAddr)
	if !is || !tcp.IP.IsUnspecified() {
		return a
	}
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
}
