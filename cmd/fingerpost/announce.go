package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"path/filepath"

	"fingerpost/api"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// demoKey is the key of the shipped projects.d, which is public. It is refused if other machines could use it.
const demoKey = "fpk_31g45atf_IxGYtQsZcUPYvUa2wCdrczpjsGBEXOux4ehEwh"

func demoKeyID() string {
	id, ok := catalog.KeyTextID([]byte(demoKey))
	if !ok {
		panic("fingerpost: the demo key is no key: impossible, it is a constant")
	}
	return string(id)
}

// exampleProjects is how many projects someDomain reads: reading all of 100,000 would delay the start.
const exampleProjects = 1000

// someDomain returns a domain for the example request. It belongs to the project whose slug sorts first: its file is
// the first that a reader sees, and the one that README.md edits. The primary domain is preferred.
func (s *service) someDomain() (name string) {
	first, seen := "", 0
	_ = s.resolver.EachProject(func(p *catalog.Project) bool {
		seen++
		if p.Status == catalog.StatusSuspended || name != "" && p.Slug > first {
			return seen < exampleProjects
		}
		domains, _, err := s.resolver.Domains(p.ID, resolver.Query{})
		if err != nil {
			return true
		}
		candidate := ""
		for _, d := range domains {
			if d.Active && !d.Wildcard() && (candidate == "" || d.Primary) {
				candidate = d.Name
			}
		}
		if candidate != "" {
			name, first = candidate, p.Slug
		}
		return seen < exampleProjects
	}) // if the store cannot be read, the line is left out
	return name
}

// blockedKeys refuses the demo key unless every address is one of this machine alone.
func (s *service) blockedKeys() map[string]bool {
	for _, l := range s.listeners {
		if !loopback(l.Addr()) {
			return map[string]bool{demoKeyID(): true}
		}
	}
	return nil
}

// loopback reports whether only this machine can reach an address.
func loopback(a net.Addr) bool {
	if a.Network() == "unix" {
		return true
	}
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// demoLoaded reports whether the files declare the demo key.
func demoLoaded(keys *resolver.KeySet) bool {
	k := keys.Lookup([]byte(demoKeyID()))
	return k != nil && k.Hash == sha256.Sum256([]byte(demoKey))
}

// announce prints, in one write, what was loaded, where the service listens, and what to try.
func (s *service) announce() {
	var all bytes.Buffer
	s.announceTo(&all)
	_, _ = s.t.out.Write(all.Bytes()) // stdout may be closed
}

func (s *service) announceTo(out io.Writer) {
	st := s.source.Status()
	fmt.Fprintf(out, "config loaded: %s, %s in %s of %s\n", count(st.Projects, "project"), count(st.Domains, "domain"),
		count(st.Files, "file"), filepath.Clean(s.f.config))
	if st.Held != nil {
		fmt.Fprintf(out, "held back: %s\n", st.Held.Reason)
	}
	if st.Errors > 0 {
		fmt.Fprintf(out, "%s in %s: run \"fingerpost validate\", or see /status\n", count(st.Errors, "error"), count(st.Quarantined, "quarantined file"))
	}
	var base string
	for _, l := range s.listeners {
		base = s.baseURL(l.Addr())
		if l.services == api.Mail {
			fmt.Fprintf(out, "mail API on %s\n", base)
			continue
		}
		fmt.Fprintf(out, "listening on %s\n", base)
	}
	fmt.Fprintf(out, "ops on http://%s\n", s.opsListener.Addr())
	demo := demoLoaded(s.resolver.Keys())
	switch {
	case demo && s.blockedKeys() != nil:
		s.log.Warn("the demo key is declared and refused, since the service listens beyond loopback; remove it from the files", "key", demoKeyID())
		return
	case demo:
		s.log.Warn("the demo key is declared, which everybody knows: remove it from the files before you go on", "key", demoKeyID())
	}
	s.tryLine(out, base, demo)
}

func (s *service) baseURL(a net.Addr) string {
	switch {
	case a.Network() == "unix":
		return "unix:" + a.String()
	case s.f.tlsCert != "":
		return "https://" + a.String()
	}
	return "http://" + a.String()
}

// tryLine prints a curl line that works without changes, if there is a key that may be shown.
func (s *service) tryLine(out io.Writer, base string, demo bool) {
	domain := s.someDomain()
	if domain == "" {
		return
	}
	key := `"X-PLATFORM-KEY: $KEY"`
	if demo {
		key = "'X-PLATFORM-KEY: " + demoKey + "'"
	}
	socket := ""
	if s.listeners[len(s.listeners)-1].Addr().Network() == "unix" {
		socket = "--unix-socket '" + s.listeners[len(s.listeners)-1].Addr().String() + "' "
		base = "http://localhost"
	}
	fmt.Fprintf(out, "try: curl -s %s-H %s '%s/api/platform/projects/resolve?domain=%s'\n", socket, key, base, domain)
	if !demo {
		fmt.Fprintf(out, "a key: fingerpost keys create NAME --allow resolve --config %s\n", s.f.config)
	}
}
