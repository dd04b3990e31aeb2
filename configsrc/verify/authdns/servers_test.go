package authdns_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/verify/authdns"
	"fingerpost/configsrc/verify/dcv"
)

// A lab is a network of real name servers: addresses of 127.0.0.0/8 that no other test has, and one port.
type lab struct {
	*testing.T
	dir  string
	port int
}

func newLab(t *testing.T) *lab {
	t.Helper()
	testrig.Thorough(t)
	return &lab{t, t.TempDir(), testrig.FreePort(t)}
}

// at is the address of a server, without the port.
func (l *lab) at(host int) string {
	return fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%200, l.port%250, host)
}

func (l *lab) write(file, format string, args ...any) string {
	l.Helper()
	path := filepath.Join(l.dir, file)
	if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600); err != nil {
		l.Fatal(err)
	}
	return path
}

// A program is a server that runs in the foreground.
type program struct {
	*exec.Cmd
	ended chan struct{}
}

func (p *program) stop() {
	_ = p.Process.Signal(syscall.SIGTERM)
	<-p.ended
}

// run starts a server and waits until it answers at a host.
func (l *lab) run(host int, name string, args ...string) *program {
	l.Helper()
	p := &program{exec.Command(testrig.Need(l.T, name)[0], args...), make(chan struct{})}
	var out bytes.Buffer
	p.Stdout, p.Stderr = &out, &out
	if err := p.Start(); err != nil {
		l.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.Wait()
	}()
	l.Cleanup(func() {
		p.stop()
		if l.Failed() {
			l.Logf("%s: %s", name, out.String())
		}
	})
	testrig.Eventually(l, name+" answers", func() bool {
		select {
		case <-p.ended:
			l.Fatalf("%s has ended: %s", name, out.String())
		default:
		}
		m, err := l.exchange(host, new(dns.Msg).SetQuestion("acme.example.", dns.TypeSOA))
		return err == nil && m.Rcode != dns.RcodeRefused
	})
	return p
}

func (l *lab) exchange(host int, m *dns.Msg) (*dns.Msg, error) {
	c := dns.Client{Timeout: 5 * time.Second}
	answer, _, err := c.Exchange(m, net.JoinHostPort(l.at(host), fmt.Sprint(l.port)))
	return answer, err
}

// The zones above the customer's, and the customer's with what a test adds. The server of the first ones is host 1.
func (l *lab) zones(records string, hosts ...int) {
	const head = "$TTL 60\n@ SOA ns1.example. mail.example. 1 60 60 60 3600\n"
	var delegation strings.Builder
	for _, h := range hosts {
		fmt.Fprintf(&delegation, "acme.example. NS ns%d.acme.example.\nns%d.acme.example. A %s\n", h, h, l.at(h))
	}
	above := "ns1.example. A " + l.at(1) + "\n"
	l.write("root.zone", "%s", head+"@ NS ns1.example.\nexample. NS ns1.example.\n"+above)
	l.write("example.zone", "%s", head+"@ NS ns1.example.\n"+above+delegation.String())
	for _, h := range hosts {
		l.write(fmt.Sprintf("acme%d.zone", h), "%s", head+delegation.String()+"shop 60 A 192.0.2.1\n"+records+"\n")
	}
}

// unbound starts a resolver at host 53 that asks the zones' servers, with more lines of configuration.
func (l *lab) unbound(host int, more string) *program {
	stubs := ""
	for zone, at := range map[string]int{".": 1, "example.": 1, "acme.example.": host} {
		stubs += fmt.Sprintf("stub-zone:\n name: %q\n stub-addr: %s@%d\n", zone, l.at(at), l.port)
	}
	return l.run(53, "unbound", "-d", "-c", l.write("unbound.conf", `server:
 interface: %[1]s@%[2]d
 port: %[2]d
 directory: %[3]q
 pidfile: ""
 username: ""
 chroot: ""
 use-syslog: no
 do-ip6: no
 do-not-query-localhost: no
 access-control: 127.0.0.0/8 allow
%[4]s
remote-control:
 control-enable: no
%[5]s`, l.at(53), l.port, l.dir, more, stubs))
}

func (l *lab) nsd(host int, zones ...string) *program {
	var list strings.Builder
	for i := 0; i < len(zones); i += 2 {
		fmt.Fprintf(&list, "zone:\n name: %q\n zonefile: %q\n", zones[i], zones[i+1])
	}
	return l.run(host, "nsd", "-d", "-c", l.write(fmt.Sprintf("nsd%d.conf", host), `server:
 ip-address: %s@%d
 server-count: 1
 username: ""
 zonesdir: %[3]q
 database: ""
 pidfile: "%[3]s/nsd%[4]d.pid"
 xfrdfile: "%[3]s/xfrd%[4]d"
 zonelistfile: "%[3]s/zonelist%[4]d"
remote-control:
 control-enable: no
%[5]s`, l.at(host), l.port, l.dir, host, list.String()))
}

func (l *lab) checker() *authdns.Checker {
	l.Helper()
	c, err := authdns.New(authdns.Options{Resolver: fmt.Sprintf("%s:%d", l.at(53), l.port), DNSPort: uint16(l.port),
		Allow: loopback, Rate: 1000, Limit: testrig.Patience, CheckLimit: testrig.Patience})
	if err != nil {
		l.Fatal(err)
	}
	return c
}

// TestRealServersDisagree: of two servers (nsd) one has the record, and a resolver (unbound) has the other's "no" in its
// cache, also after both have the record.
func TestRealServersDisagree(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.zones("", 1, 2)
	without := l.read("acme2.zone")
	l.write("acme1.zone", "%s%s\n", without, record)
	l.nsd(1, ".", "root.zone", "example", "example.zone", "acme.example", "acme1.zone")
	second := l.nsd(2, "acme.example", "acme2.zone")
	l.unbound(2, "")
	c := l.checker()
	const found = "token=" + token + " expiry=never/"
	first := check(t, c, dcv.Policy{}, exact, domain)
	if got := says(first.Proofs[0]); got != "ns1="+found+" ns2=/" {
		t.Errorf("%q", got)
	}
	until := first.Zone.NegativeUntil
	if r := first.Zone.Resolver; r.Error != "" || until.Before(r.At) || until.After(r.At.Add(61*time.Second)) {
		t.Errorf("%+v", first.Zone)
	}

	l.write("acme2.zone", "%s%s\n", strings.Replace(without, " 1 60 60", " 2 60 60", 1), record)
	_ = second.Process.Signal(syscall.SIGHUP)
	var facts dcv.Facts
	testrig.Eventually(t, "both have it", func() bool {
		facts = check(t, c, dcv.Policy{}, exact, domain)
		return says(facts.Proofs[0]) == "ns1="+found+" ns2="+found
	})
	if z := facts.Zone; z.Resolver.At.Before(until.Add(-2*time.Second)) && (z.NegativeUntil.IsZero() || len(z.Resolver.Values) > 0) {
		t.Errorf("the resolver knows it already: %+v", z)
	}
}

func (l *lab) read(file string) string {
	l.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, file))
	if err != nil {
		l.Fatal(err)
	}
	return string(b)
}

// knot starts a server at host 1 with all zones; dnssec are lines for the customer's zone.
func (l *lab) knot(dnssec string) *program {
	return l.run(1, "knotd", "-c", l.write("knot.conf", `server:
    rundir: %[1]q
    listen: %[2]s@%[3]d
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: stderr
    any: info
database:
    storage: %[1]q
acl:
  - id: update
    address: 127.0.0.0/8
    action: update
policy:
  - id: one
    algorithm: ecdsap256sha256
    single-type-signing: on
template:
  - id: default
    storage: %[1]q
    zonefile-sync: 0
zone:
  - domain: .
    file: root.zone
  - domain: example
    file: example.zone
  - domain: acme.example
    file: acme1.zone
    acl: update
%[4]s`, l.dir, l.at(1), l.port, dnssec))
}

// TestRealSignedZone: a signed zone (knot) whose record comes by a dynamic update is seen at once; with a record that is
// not the signed one a resolver that checks signatures (unbound) says SERVFAIL, and the authoritative server's answer
// counts.
func TestRealSignedZone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.zones("", 1)
	server := l.knot("    dnssec-signing: on\n    dnssec-policy: one\n")
	c := l.checker()
	key, err := exec.Command(testrig.Need(t, "keymgr")[0], "-c", filepath.Join(l.dir, "knot.conf"), "acme.example.", "ds").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, key)
	}
	anchor, _, _ := strings.Cut(string(key), "\n")
	resolver := l.unbound(1, fmt.Sprintf(" module-config: \"validator iterator\"\n trust-anchor: %q\n", anchor))

	if facts := check(t, c, dcv.Policy{}, exact); says(facts.Proofs[0]) != "ns1=/" || facts.Zone.NegativeUntil.IsZero() || facts.Zone.BrokenDNSSEC {
		t.Errorf("%+v", facts)
	}
	update := new(dns.Msg).SetUpdate("acme.example.")
	rr, err := dns.NewRR(strings.Replace(record, ".shop ", ".shop.acme.example. 60 ", 1))
	if err != nil {
		t.Fatal(err)
	}
	update.Insert([]dns.RR{rr})
	if m, err := l.exchange(1, update); err != nil || m.Rcode != dns.RcodeSuccess {
		t.Fatal(err, m)
	}
	const found = "token=" + token + " expiry=never/"
	if facts := check(t, c, dcv.Policy{}, exact); says(facts.Proofs[0]) != "ns1="+found || facts.Zone.BrokenDNSSEC {
		t.Errorf("%+v", facts)
	}

	server.stop()
	resolver.stop()
	signed := l.read("acme1.zone")
	if !strings.Contains(signed, "RRSIG") || !strings.Contains(signed, token) {
		t.Fatalf("the zone's file is not signed:\n%s", signed)
	}
	for _, file := range []string{"journal", "timers"} {
		_ = os.RemoveAll(filepath.Join(l.dir, file))
	}
	l.write("acme1.zone", "%s", strings.ReplaceAll(signed, "expiry=never", "expiry=later"))
	l.knot("")
	l.unbound(1, fmt.Sprintf(" module-config: \"validator iterator\"\n trust-anchor: %q\n", anchor))
	facts := check(t, c, dcv.Policy{}, exact)
	if says(facts.Proofs[0]) != "ns1=token="+token+" expiry=later/" || facts.Zone.Resolver.Error != "SERVFAIL" || !facts.Zone.BrokenDNSSEC {
		t.Errorf("%+v", facts)
	}
}
