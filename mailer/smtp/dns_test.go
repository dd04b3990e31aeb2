package smtp_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"fingerpost/mailer/smtp"
)

// A testDNS is a name server. It answers what answer has added, is silent about "silent.…", and fails at "failing.…".
type testDNS struct {
	conn net.PacketConn

	mu    sync.Mutex
	hosts map[string][][]netip.Addr // each look-up takes the first answer, and leaves the last
}

func newTestDNS(t *testing.T) *testDNS {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &testDNS{conn: conn, hosts: map[string][][]netip.Addr{}}
	done := make(chan struct{})
	go func() { defer close(done); d.serve() }()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return d
}

// answer adds the addresses that a look-up of host gets.
func (d *testDNS) answer(host string, addresses ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []netip.Addr
	for _, a := range addresses {
		all = append(all, netip.MustParseAddr(a))
	}
	d.hosts[host+"."] = append(d.hosts[host+"."], all)
}

func (d *testDNS) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", d.conn.LocalAddr().String())
	}}
}

func (d *testDNS) serve() {
	b := make([]byte, 1500)
	for {
		n, from, err := d.conn.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 || strings.HasPrefix(m.Questions[0].Name.String(), "silent.") {
			continue
		}
		reply, err := d.reply(m).Pack()
		if err == nil {
			_, _ = d.conn.WriteTo(reply, from)
		}
	}
}

func (d *testDNS) reply(m dnsmessage.Message) *dnsmessage.Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := m.Questions[0]
	r := &dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	answers, known := d.hosts[q.Name.String()]
	switch {
	case strings.HasPrefix(q.Name.String(), "failing."):
		r.RCode = dnsmessage.RCodeServerFailure
		return r
	case !known:
		r.RCode = dnsmessage.RCodeNameError
		return r
	}
	for _, a := range answers[0] {
		head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			r.Answers = append(r.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			r.Answers = append(r.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	if q.Type == dnsmessage.TypeA && len(answers) > 1 {
		d.hosts[q.Name.String()] = answers[1:]
	}
	return r
}

// dump returns everything that an Outcome can show.
func dump(out smtp.Outcome) string { return fmt.Sprintf("%+v %#v", out, out) }
