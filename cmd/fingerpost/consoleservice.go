package main

import (
	"fmt"
	"io"
	"net"

	"fingerpost/api"
	"fingerpost/api/console"
)

// consoleOptions are what the console shows beyond the answers of the API. nil: there is no console.
func (s *service) consoleOptions() *console.Options {
	if !s.f.console {
		return nil
	}
	o := &console.Options{Config: s.source, Mail: s.mail.mailer, DemoKey: s.demoKeyInUse, GitWeb: s.f.gitWeb,
		Version: builtAs().version}
	if s.repo != nil {
		o.GitState = s.consoleGit
	}
	return o
}

func (s *service) consoleGit() console.GitState {
	st := s.repo.Status()
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
func (s *service) demoKeyInUse() string {
	if s.demoDeclared() && s.blockedKeys() == nil {
		return demoKey
	}
	return ""
}

// consoleLine prints where the console is.
func (s *service) consoleLine(out io.Writer) {
	for _, l := range s.listeners {
		if l.services&api.Console == 0 {
			continue
		}
		if a := l.Addr(); a.Network() != "unix" {
			fmt.Fprintf(out, "console on %s%s\n", s.baseURL(reachable(a)), console.Prefix)
		} else {
			fmt.Fprintf(out, "console on %s, at %s\n", s.baseURL(a), console.Prefix)
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
