package node

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"fingerpost/api"
	"fingerpost/api/conditions"
	"fingerpost/api/console"
	"fingerpost/api/login"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// consoleOptions are what the console shows beyond the answers of the API. nil: there is no console.
func (n *service) consoleOptions(secrets *seal.Secrets) *console.Options {
	if !n.o.Console.On {
		return nil
	}
	o := &console.Options{Node: console.Node{Config: n.source, Mail: n.mail.mailer, History: n.history,
		MailKept: n.o.Mail.Keep, Unproven: n.unproven, State: func() *conditions.State { return n.ops.State() }},
		DemoKey: n.demoKeyInUse,
		GitWeb:  n.o.Git.Web, Version: n.o.Build.Version}
	o.SignIn = n.signInOptions(secrets)
	if n.deliversEvents() {
		o.Webhooks = n.webhooks
	}
	if n.repo != nil {
		o.GitState = n.consoleGit
	}
	if n.o.Listen.Console != "" {
		o.APIURL = n.apiURL
	}
	return o
}

// signInOptions say how people sign in to the console.
func (n *service) signInOptions(secrets *seal.Secrets) console.SignIn {
	o := console.SignIn{Declared: n.resolver.Logins, PublicURL: n.o.Listen.PublicURL, Domain: n.addressDomain(),
		KeysOff: n.o.Console.KeysOff}
	o.Desk = login.New(login.Options{Logins: n.resolver.Logins, Secret: secrets.OpenLogin, ReadCA: secrets.ReadLoginCA,
		PublicURL: n.o.Listen.PublicURL, Allow: n.o.Allow.Logins, Version: n.o.Build.Version, Logger: n.o.Logger})
	return o
}

// apiURL returns the address of the API for a browser that reaches this machine by a host name.
func (n *service) apiURL(host string) string {
	i := slices.IndexFunc(n.listeners, func(l boundListener) bool { return l.services&api.Platform != 0 })
	a := n.listeners[i].Addr()
	tcp, is := a.(*net.TCPAddr)
	if !is || !tcp.IP.IsUnspecified() {
		return n.baseURL(a)
	}
	scheme, _, _ := strings.Cut(n.baseURL(a), "://")
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

func (n *service) consoleGit() console.GitState {
	st := n.repo.Status()
	return console.GitState{Branch: st.Branch, Head: st.Head, Ahead: st.Ahead, Behind: st.Behind, Pending: st.Pending,
		Conflict: st.Conflict, Overruled: st.Overruled, Errors: st.Errors()}
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

// linkLine prints a sign-in link, if it was asked for or nobody can sign in yet. Only a terminal gets it: what goes to a
// file or to the journal has more readers.
func (n *service) linkLine(out io.Writer) {
	if !n.o.Terminal || !n.o.Console.Link && n.maySignIn() {
		return
	}
	for _, l := range n.listeners {
		if a := l.Addr(); l.services&api.Console != 0 && loopback(reachable(a)) && a.Network() != "unix" {
			if path := n.api.ConsoleLink(); path != "" {
				fmt.Fprintf(out, "sign in once, within %d minutes, on this machine: %s%s\n", console.LinkTime/time.Minute,
					n.baseURL(reachable(a)), path)
			}
			return
		}
	}
	if n.o.Console.Link {
		fmt.Fprintln(out, "no sign-in link: the console has no address that only this machine has, such as 127.0.0.1:8080")
	}
}

// signInLinks returns a link that signs in once, at each address of the console.
func (n *service) signInLinks() (links []string) {
	path := n.api.RemoteConsoleLink()
	for _, l := range n.listeners {
		if a := l.Addr(); path != "" && l.services&api.Console != 0 && a.Network() != "unix" {
			links = append(links, n.baseURL(reachable(a))+path)
		}
	}
	return links
}

// maySignIn reports whether the files declare a key that may sign in to the console, or a login.
func (n *service) maySignIn() bool {
	if n.o.Listen.PublicURL != "" && len(n.resolver.Logins()) > 0 {
		return true
	}
	if n.o.Console.KeysOff {
		return false
	}
	blocked, now := n.blockedKeys(), time.Now()
	return slices.ContainsFunc(n.resolver.Keys().All(), func(k *resolver.Key) bool {
		return k.Allow&catalog.MayRead != 0 && !k.Expired(now) && !blocked[k.ID]
	})
}

// reachable returns an address that a browser on this machine can open: the one that means all addresses is none.
func reachable(a net.Addr) net.Addr {
	tcp, is := a.(*net.TCPAddr)
	if !is || !tcp.IP.IsUnspecified() {
		return a
	}
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
}
