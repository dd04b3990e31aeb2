package smtp_test

import (
	"net"
	"net/netip"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/smtp"
)

// TestGuardAtConnect: the guard checks the address of each connection, whatever an earlier look-up of the host
// returned.
func TestGuardAtConnect(t *testing.T) {
	t.Parallel()
	if l, err := net.Listen("tcp", "127.0.0.2:0"); err != nil {
		t.Skip("loopback has one address here: ", err)
	} else {
		_ = l.Close()
	}
	dns := newTestDNS(t)
	peer := newScripted(t, nil, script(greet, takes, hangUp))
	port := peer.server().Port
	forbidden := newScriptedAt(t, net.JoinHostPort("127.0.0.2", "0"), nil, script(greet, takes))
	tr := newTestTransport(t, smtp.TransportOptions{Resolver: dns.resolver(), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	send := func(host string, port int) smtp.Outcome {
		return tr.Send(t.Context(), smtp.Server{Host: host, Port: port}, testEnvelope, testMessage)
	}

	dns.answer("rebinds.example", "127.0.0.1")
	dns.answer("rebinds.example", "127.0.0.2")
	if out := send("rebinds.example", port); out.Class != smtp.Accepted {
		t.Fatalf("first: %+v", out)
	}
	testrig.Eventually(t, "the server closes", func() bool { _, open, _ := peer.connections(); return open == 0 })
	if out := send("rebinds.example", port); out.Code != smtp.CodeAddressNotAllowed { // the connection is stale: looked up again
		t.Errorf("second: %+v", out)
	}

	dns.answer("many.example", "10.1.2.3", "127.0.0.2", "127.0.0.1")
	if out := send("many.example", port); out.Class != smtp.Accepted {
		t.Errorf("one of its addresses is allowed: %+v", out)
	}

	dns.answer("mapped.example", "::ffff:127.0.0.2")
	for _, host := range []string{"127.0.0.2", "::ffff:127.0.0.2", "mapped.example"} {
		out := send(host, forbidden.server().Port)
		row{class: smtp.Permanent, stage: smtp.StageDial, code: smtp.CodeAddressNotAllowed, fields: "host"}.compare(t, out)
	}
	if n, _, _ := forbidden.connections(); n != 0 {
		t.Errorf("%d connections to where none is allowed", n)
	}
}
