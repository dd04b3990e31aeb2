package publicnet_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

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
	for _, a := range []string{"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1",
		"fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd12::1", "ff02::1", "100::1", "2001::1", "2001:10::1", "2001:db8::1",
		"2002:7f00:1::", "2002:808:808::", "3fff::1", "5f00::1", "64:ff9b::8.8.8.8", "64:ff9b::127.0.0.1", "64:ff9b:1::a00:1", "4000::1", "fe80::ffff:1"} {
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
