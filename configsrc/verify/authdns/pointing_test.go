package authdns_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/cmd/testrig/faultdns"
	"fingerpost/configsrc/verify/authdns"
	"fingerpost/configsrc/verify/dcv"
)

// TestPointing: addresses of the name at the end of its chain, and of the targets.
func TestPointing(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", "shop CNAME shops.edge.example.net.\n*.shop A 192.0.2.7", "127.0.0.3", "127.0.0.4")
	n.Zone("edge.example.net", "@ A 192.0.2.1\n@ A 192.0.2.2\n@ AAAA 2001:db8::1\nshops A 192.0.2.1\nshops AAAA 2001:db8::9", "127.0.0.5")
	n.Set("127.0.0.4", "acme.example", "shop A 198.51.100.1")
	policy := dcv.Policy{Hosts: []string{"edge.example.net", "gone.example.net"}}
	c := newChecker(t, n, nil)
	p := check(t, c, policy).Pointing
	if got := fmt.Sprint(p.Addresses); got != "[192.0.2.1 198.51.100.1 2001:db8::9]" {
		t.Errorf("addresses %s", got)
	}
	if got := fmt.Sprint(p.TargetAddresses); got != "[192.0.2.1 192.0.2.2 2001:db8::1]" {
		t.Errorf("targets %s", got)
	}
	if p.TargetError != "gone.example.net: it has no address" {
		t.Errorf("%q", p.TargetError)
	}
	var lines []string
	for _, f := range p.Findings {
		lines = append(lines, f.Type+" "+says(f))
	}
	want := []string{"CNAME ns3=shops.edge.example.net/ ns4=/", "A ns4=198.51.100.1/ ns5.edge.example.net=192.0.2.1/",
		"AAAA ns4=/ ns5.edge.example.net=2001:db8::9/"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}

	wild := dcv.Subject{Name: "*." + name}
	facts, err := c.Check(t.Context(), wild, policy, nil)
	if err != nil || facts.Pointing.Name != "fingerpost-check."+name || fmt.Sprint(facts.Pointing.Addresses) != "[192.0.2.7]" {
		t.Errorf("%v %+v", err, facts.Pointing)
	}
}

// An authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"Test\x1b"}, CommonName: "Root"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// issue returns a certificate for a name that is valid from and until an hour off now.
func (a *authority) issue(t *testing.T, name string, from, until int) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{name},
		NotBefore: time.Now().Add(time.Duration(from) * time.Hour), NotAfter: time.Now().Add(time.Duration(until) * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// listen serves connections at an address, with a port that an earlier call chose or 0.
func listen(t *testing.T, addr string, port uint16, serve func(net.Conn)) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr(addr), port).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// TestTLS: what an address of a target says to a client that wants the name.
func TestTLS(t *testing.T) {
	t.Parallel()
	known, stranger := newAuthority(t), newAuthority(t)
	offer := func(cert tls.Certificate) func(net.Conn) {
		return func(conn net.Conn) {
			c := tls.Server(conn, &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				if hello.ServerName != name {
					return nil, fmt.Errorf("no certificate for %s", hello.ServerName)
				}
				return &cert, nil
			}})
			if c.Handshake() == nil {
				if b, _ := io.ReadAll(c); len(b) > 0 {
					t.Errorf("the client sent %q", b)
				}
			}
		}
	}
	type want struct {
		connected, refused bool
		err                string
	}
	for what, row := range map[string]struct {
		serve func(net.Conn)
		want  want
	}{
		"good":     {offer(known.issue(t, name, -1, 1)), want{true, false, ""}},
		"expired":  {offer(known.issue(t, name, -2, -1)), want{true, false, "the certificate expired on "}},
		"early":    {offer(known.issue(t, name, 1, 2)), want{true, false, "the certificate is not valid before "}},
		"other":    {offer(known.issue(t, "*.other.example", -1, 1)), want{true, false, "the certificate is for *.other.example, not for " + name}},
		"stranger": {offer(stranger.issue(t, name, -1, 1)), want{true, false, "the certificate is signed by Test\\027 Root, which is not trusted here"}},
		"none": {func(conn net.Conn) {
			_ = tls.Server(conn, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, io.EOF }}).Handshake()
		}, want{false, true, "the server has no certificate for the name: "}},
		"plain": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n")
			_, _ = io.Copy(io.Discard, conn)
		}, want{false, true, "the port does not speak TLS"}},
		"hangup": {func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }, want{false, true, "the server hung up during the handshake"}},
		"silent": {func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }, want{false, false, "time-out"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			n := faultdns.New(t)
			n.Zone("acme.example", "shop A 127.0.0.9", "127.0.0.3")
			port := listen(t, "127.0.0.9", 0, row.serve)
			c := newChecker(t, n, func(o *authdns.Options) { o.TLSPort, o.Roots, o.Limit = port, known.pool(), limitOf(row.want.err) })
			policy := dcv.Policy{Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.8/29")}}
			var got dcv.TLS
			testrig.Eventually(t, "name servers answer within the limit", func() bool {
				got = check(t, c, policy).TLS
				return len(got.Tried) > 0
			})
			if !strings.HasPrefix(got.Error, row.want.err) || row.want.err == "" && got.Error != "" ||
				got.Connected != row.want.connected || got.Refused != row.want.refused || len(got.Tried) != 1 {
				t.Errorf("%+v", got)
			}
			if got.Connected && (got.Issuer != "Test\\027 Root" || got.NotAfter.IsZero()) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestTLSAddresses: only addresses of targets are connected to, one of each family, and what is wrong with one of two is
// said with its address.
func TestTLSAddresses(t *testing.T) {
	t.Parallel()
	known := newAuthority(t)
	cert := known.issue(t, name, -1, 1)
	var dialled [3]chan struct{}
	serve := func(i int) func(net.Conn) {
		dialled[i] = make(chan struct{}, 10)
		return func(conn net.Conn) {
			dialled[i] <- struct{}{}
			_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}}).Handshake()
		}
	}
	n := faultdns.New(t)
	n.Zone("acme.example", "shop A 127.0.0.9\nshop A 127.0.0.10\nshop A 127.0.0.11\nshop AAAA ::1", "127.0.0.3")
	n.Zone("edge.example.net", "@ A 127.0.0.11\n@ A 127.0.0.10", "127.0.0.4")
	port := listen(t, "127.0.0.9", 0, serve(0))
	listen(t, "127.0.0.10", port, serve(1))
	listen(t, "127.0.0.11", port, serve(2))
	policy := dcv.Policy{Hosts: []string{"edge.example.net"}}
	options := func(o *authdns.Options) { o.TLSPort, o.Roots = port, known.pool() }
	got := check(t, newChecker(t, n, options), policy).TLS
	if fmt.Sprint(got.Tried) != "[127.0.0.10]" || got.Error != "" || len(dialled[0])+len(dialled[2]) > 0 || len(dialled[1]) != 1 {
		t.Errorf("%+v, connections %d %d %d", got, len(dialled[0]), len(dialled[1]), len(dialled[2]))
	}

	policy.Prefixes = []netip.Prefix{netip.MustParsePrefix("::1/128")}
	got = check(t, newChecker(t, n, func(o *authdns.Options) { options(o); o.Allow = append(loopback, netip.MustParsePrefix("::1/128")) }), policy).TLS
	if fmt.Sprint(got.Tried) != "[127.0.0.10 ::1]" || !got.Connected || !strings.HasPrefix(got.Error, "::1: ") {
		t.Errorf("%+v", got)
	}

	// Inner addresses are not connected to, also if they are a target's.
	n.Zone("acme.example", "shop A 10.1.2.3", "127.0.0.3")
	policy.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	got = check(t, newChecker(t, n, options), policy).TLS
	if got.Tried != nil || got.Error != "cannot be asked" {
		t.Errorf("%+v", got)
	}
}
