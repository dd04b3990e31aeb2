package publicnet_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/publicnet"
)

// TestGuardTable: the guard's verdict on addresses, with nothing allowed and with some networks.
func TestGuardTable(t *testing.T) {
	t.Parallel()
	const yes, no = true, false
	check := func(address string, want bool, allow ...string) {
		t.Helper()
		var networks []netip.Prefix
		for _, a := range allow {
			networks = append(networks, netip.MustParsePrefix(a))
		}
		if got := publicnet.New(networks).Allows(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s with %v: %v", address, allow, got)
		}
	}
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.167.1.1", "198.20.0.1",
		"223.255.255.255", "169.253.1.1", "2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "2001:4860:4860::8888"} {
		check(a, yes)
	}
	for _, a := range testrig.InsideAddresses() {
		check(a, no)
	}
	check("10.1.2.3", yes, "10.0.0.0/8")
	check("::ffff:10.1.2.3", yes, "10.0.0.0/8")
	check("10.1.2.3", yes, "::ffff:10.0.0.0/104")
	check("10.1.2.3", no, "192.168.0.0/16")
	check("127.0.0.1", yes, "192.168.0.0/16", "127.0.0.1/32")
	check("127.0.0.2", no, "127.0.0.1/32")
	check("::1", yes, "::1/128")
	check("::1", no, "127.0.0.0/8")
	check("fe80::1%eth0", yes, "fe80::/10")
	// Behind a translator the translated address counts, too.
	check("64:ff9b::8.8.8.8", yes, "64:ff9b::/96")
	check("64:ff9b::169.254.169.254", no, "64:ff9b::/96")
	check("64:ff9b::10.0.0.1", no, "10.0.0.0/8")
	check("64:ff9b::10.0.0.1", yes, "64:ff9b::/96", "10.0.0.0/8")
	check("2002:7f00:1::", no, "2002::/16")
	check("2002:808:808::", yes, "2002::/16")
}

// TestControl: a dialer asks the guard for each address of a name, at the moment of the connection.
func TestControl(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	dial := func(host string, allow ...string) error {
		var networks []netip.Prefix
		for _, a := range allow {
			networks = append(networks, netip.MustParsePrefix(a))
		}
		d := net.Dialer{Control: publicnet.New(networks).Control}
		conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1", "169.254.169.254", "10.0.0.1"} {
		if err := dial(host, "127.0.0.2/32"); !errors.Is(err, publicnet.ErrNotAllowed) {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		if err := dial(host, "127.0.0.0/8"); err != nil {
			t.Errorf("%s is allowed: %v", host, err)
		}
	}
	if err := publicnet.New(nil).Control("unix", "/run/some.sock", nil); !errors.Is(err, publicnet.ErrNotAllowed) {
		t.Errorf("a socket of another kind: %v", err)
	}
}
