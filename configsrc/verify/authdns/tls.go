package authdns

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"fingerpost/configsrc/verify/dcv"
)

// tls connects to one address of each family that is a target's.
func (s *session) tls(p dcv.Pointing, policy dcv.Policy) (t dcv.TLS) {
	family := map[bool]bool{}
	for _, addr := range p.Addresses {
		inside := func(prefix netip.Prefix) bool { return prefix.Contains(addr) }
		here := slices.Contains(p.TargetAddresses, addr) || slices.ContainsFunc(policy.Prefixes, inside)
		if !here || family[addr.Is4()] {
			continue
		}
		if !s.guard.Allows(addr) {
			if t.Error == "" {
				t.Error = s.notPublic(p.Name, addr)
			}
			continue
		}
		family[addr.Is4()] = true
		t.Tried = append(t.Tried, addr)
	}
	if len(t.Tried) > 0 {
		t.Error = ""
	}
	for _, addr := range t.Tried {
		one := s.handshake(addr, p.Name)
		if one.Error != "" && len(t.Tried) > 1 {
			one.Error = addr.String() + ": " + one.Error
		}
		t = worse(t, one)
	}
	return t
}

// worse returns what both addresses are together: everything that is wrong with one, and the certificate that ends first.
// An address that nothing is known about, as an IPv6 address is where this machine has no IPv6, does not count if more is
// known about the other one.
func worse(t, one dcv.TLS) dcv.TLS {
	definite := func(t dcv.TLS) bool { return t.Connected || t.Refused }
	if tried := t.Tried; definite(one) && !definite(t) {
		t = one
		t.Tried = tried
		return t
	} else if definite(t) && !definite(one) {
		return t
	}
	t.Connected, t.Refused = t.Connected || one.Connected, t.Refused || one.Refused
	if t.Error == "" {
		t.Error = one.Error
	} else if one.Error != "" {
		t.Error += "; " + one.Error
	}
	if t.NotAfter.IsZero() || !one.NotAfter.IsZero() && one.NotAfter.Before(t.NotAfter) {
		t.NotAfter, t.Issuer = one.NotAfter, one.Issuer
	}
	return t
}

// handshake does a TLS handshake as a browser would that wants the name, and ends the connection.
func (s *session) handshake(addr netip.Addr, name string) (t dcv.TLS) {
	done, err := s.open.Take(s.ctx, s.tenant)
	if err != nil {
		t.Error = dcv.TimedOut
		return t
	}
	defer done()
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Limit)
	defer cancel()
	d := net.Dialer{Control: s.guard.Control}
	conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, s.o.TLSPort).String())
	if err != nil {
		t.Refused = errors.Is(err, syscall.ECONNREFUSED)
		t.Error = connectError(err)
		return t
	}
	defer conn.Close()
	// The certificate is verified below: one that is not good is shown, too.
	c := tls.Client(conn, &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: true}) //nolint:gosec // see above
	if err := c.HandshakeContext(ctx); err != nil {
		t.Error = connectError(err)
		t.Refused = t.Error != dcv.TimedOut
		return t
	}
	chain := c.ConnectionState().PeerCertificates
	t.Connected, t.NotAfter, t.Issuer = true, chain[0].NotAfter, issuerOf(chain[0])
	t.Error = verify(chain, name, s.o.Roots)
	return t
}

// connectError says why there is no certificate.
func connectError(err error) string {
	var remote *net.OpError
	var header tls.RecordHeaderError
	switch {
	case wordOf(err) == dcv.TimedOut:
		return dcv.TimedOut
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &header):
		return "the port does not speak TLS"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "the server hung up during the handshake"
	case errors.As(err, &remote) && remote.Op == "remote error": // an alert
		return "the server has no certificate for the name: " + remote.Err.Error()
	}
	return printable(err.Error())
}

// verify says what is wrong with a certificate for a name, in words for people.
func verify(chain []*x509.Certificate, name string, roots *x509.CertPool) string {
	leaf := chain[0]
	if now := time.Now(); now.After(leaf.NotAfter) {
		return "the certificate expired on " + leaf.NotAfter.UTC().Format(time.DateOnly)
	} else if now.Before(leaf.NotBefore) {
		return "the certificate is not valid before " + leaf.NotBefore.UTC().Format(time.DateTime) + " UTC"
	}
	if leaf.VerifyHostname(name) != nil {
		names := leaf.DNSNames
		if len(names) == 0 {
			return "the certificate has no host name; it must have " + name
		}
		list := strings.Join(names[:min(len(names), 5)], ", ")
		return printable(fmt.Sprintf("the certificate is for %.300s, not for %s", list, name))
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: between})
	var unknown x509.UnknownAuthorityError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &unknown):
		return "the certificate is signed by " + issuerOf(leaf) + ", which is not trusted here, or the chain is not complete"
	}
	return printable(fmt.Sprintf("the certificate is not valid: %.300v", err))
}

// issuerOf returns the name of a certificate's issuer.
func issuerOf(c *x509.Certificate) string {
	parts := slices.Concat(c.Issuer.Organization, []string{c.Issuer.CommonName})
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return printable(fmt.Sprintf("%.200s", strings.Join(parts, " ")))
}
