package node

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"fingerpost/api"
	"fingerpost/configsrc/folder"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// DemoKey is the key of the shipped projects.d, which is public. It is refused if other machines could use it.
const DemoKey = "fpk_31g45atf_IxGYtQsZcUPYvUa2wCdrczpjsGBEXOux4ehEwh"

// DemoKeyID is the second part of the demo key.
func DemoKeyID() string { return strings.Split(DemoKey, "_")[1] }

// exampleProjects is how many projects someDomain reads: reading all of 100,000 would delay the start.
const exampleProjects = 1000

// someDomain returns a domain for the example request. It belongs to the project whose slug sorts first: its file is
// the first that a reader sees, and the one that README.md edits. The primary domain is preferred.
func (n *service) someDomain() (name string) {
	first, seen := "", 0
	_ = n.resolver.EachProject(func(p *catalog.Project) bool {
		if p.Status != catalog.StatusSuspended && (name == "" || p.Slug < first) {
			domains, _, _ := n.resolver.Domains(p.ID, resolver.Query{})
			for _, d := range domains {
				if d.NotVerified(n.resolver.Defaults()) == 0 && !d.Wildcard() && (p.Slug != first || d.Primary) {
					name, first = d.Name, p.Slug
				}
			}
		}
		seen++
		return seen < exampleProjects
	}) // if the store cannot be read, the line is left out
	return name
}

// blockedKeys refuses the demo key unless every address that takes keys is one of this machine alone.
func (n *service) blockedKeys() map[string]bool {
	for _, l := range n.listeners {
		if l.services != api.Gateway && !loopback(l.Addr()) {
			return map[string]bool{DemoKeyID(): true}
		}
	}
	return nil
}

// demoDeclared reports whether the files declare the demo key.
func (n *service) demoDeclared() bool {
	k := n.resolver.Keys().Lookup([]byte(DemoKeyID()))
	return k != nil && k.Hash == sha256.Sum256([]byte(DemoKey))
}

// loopback reports whether only this machine can reach an address.
func loopback(a net.Addr) bool {
	if a.Network() == "unix" {
		return true
	}
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// unwritable says that writes will fail because of the rights of the config folder.
func (n *service) unwritable(out io.Writer) {
	if n.o.Files.ReadOnly {
		return
	}
	if err := folder.Writable(n.o.Files.Config); err != nil {
		fmt.Fprintf(out, "writes over the API and in the console will fail: %s: %v; "+
			"let this user write into the folder, or serve --read-only\n", n.o.Files.Config, err)
		n.o.Logger.Warn("the config folder cannot be written: writes over the API and in the console will fail",
			"folder", n.o.Files.Config, "error", err)
	}
}

// announce prints, in one write, what was loaded, where the service listens, and what to try.
func (n *service) announce() {
	out := new(bytes.Buffer)
	defer func() { _, _ = n.o.Out.Write(out.Bytes()) }() // stdout may be closed
	st := n.source.Status()
	if n.cluster.isEdge() {
		fmt.Fprintf(out, "edge %s of cluster %s: %s and %s so far\n", n.o.Cluster.EdgeName, n.o.Cluster.Name,
			catalog.Count(st.Projects, "project"), catalog.Count(st.Domains, "domain"))
	} else {
		fmt.Fprintf(out, "config loaded: %s, %s in %s of %s\n", catalog.Count(st.Projects, "project"),
			catalog.Count(st.Domains, "domain"), catalog.Count(st.Files, "file"), filepath.Clean(n.o.Files.Config))
		n.unwritable(out)
	}
	if st.Held != nil {
		fmt.Fprintf(out, "held back: %s\n", st.Held.Reason)
	}
	if st.Errors > 0 {
		fmt.Fprintf(out, "%s in %s: run \"fingerpost validate\", or see /status\n", catalog.Count(st.Errors, "error"),
			catalog.Count(st.Quarantined, "quarantined file"))
	}
	for _, l := range n.listeners {
		switch l.services {
		case api.Mail:
			fmt.Fprintf(out, "mail API on %s\n", n.baseURL(l.Addr()))
		case api.Gateway:
			fmt.Fprintf(out, "gateways ask on %s\n", clearURL(l.Addr()))
		case api.Console:
		default:
			fmt.Fprintf(out, "listening on %s\n", n.baseURL(l.Addr()))
		}
	}
	if slices.ContainsFunc(n.listeners, func(l boundListener) bool { return l.inherited }) {
		fmt.Fprintln(out, "the socket is the service manager's, and stays open over a restart")
	}
	n.consoleLine(out)
	n.linkLine(out)
	if n.o.Mail.Keep {
		fmt.Fprintln(out, "mail is kept, not sent (--mail-sink): the console and \"fingerpost logs\" show it")
		n.o.Logger.Warn("every mail is kept instead of being sent, since --mail-sink is given")
	}
	for _, l := range n.opsListeners {
		fmt.Fprintf(out, "ops on http://%s\n", l.Addr())
	}
	if n.cluster.isEdge() {
		return // keys are made where the files are
	}
	if addr := n.cluster.edgesAddr(); addr != "" {
		scheme := "nats"
		if n.o.Listen.TLSCert != "" {
			scheme = "tls"
		}
		fmt.Fprintf(out, "edges follow %s://%s\n", scheme, addr)
	}
	demo := n.demoDeclared()
	if demo && n.blockedKeys() != nil {
		n.o.Logger.Warn("the demo key is declared and refused, since the service listens beyond loopback; remove it from "+
			"the files", "key", DemoKeyID())
		return
	}
	if demo {
		n.o.Logger.Warn("the demo key is declared, which everybody knows: remove it from the files before you go on", "key",
			DemoKeyID())
	}
	n.tryLine(out, demo)
}

func (n *service) baseURL(a net.Addr) string {
	if a.Network() != "unix" && n.o.Listen.TLSCert != "" {
		return "https://" + a.String()
	}
	return clearURL(a)
}

func clearURL(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return "http://" + a.String()
}

// tryLine prints a curl line that works without changes, if there is a key that may be shown.
func (n *service) tryLine(out io.Writer, demo bool) {
	domain := n.someDomain()
	if domain == "" {
		return
	}
	key := `"X-PLATFORM-KEY: $KEY"`
	if demo {
		key = "'X-PLATFORM-KEY: " + DemoKey + "'"
	}
	address := n.listeners[len(n.listeners)-1].Addr() // that of resolve
	base, socket := n.baseURL(address), ""
	if address.Network() == "unix" {
		base, socket = "http://localhost", "--unix-socket '"+address.String()+"' "
	}
	fmt.Fprintf(out, "try: curl -s %s-H %s '%s/api/platform/projects/resolve?domain=%s'\n", socket, key, base, domain)
	if !demo {
		fmt.Fprintf(out, "a key: fingerpost keys create NAME --allow resolve --config %s\n", n.o.Files.Config)
	}
}
