package hostname_test

import (
	"strings"
	"testing"

	"fingerpost/resolver/hostname"
)

// asked is what resolve does with a client's name.
func asked(raw []byte) (string, error) {
	var buf [hostname.MaxLen]byte
	host, idn, err := hostname.Append(buf[:0], raw)
	if err != nil {
		return "", err
	}
	if idn {
		return hostname.FinishIDN(host)
	}
	return string(host), nil
}

// checkName compares a result with the wanted name or, if want begins with "!", with a part of the wanted error.
func checkName(t *testing.T, call, in, got string, err error, want string) {
	t.Helper()
	if text, bad := strings.CutPrefix(want, "!"); bad {
		if err == nil || !strings.Contains(err.Error(), text) || got != "" {
			t.Errorf("%s(%q) = %q, %v; want an error with %q", call, in, got, err, text)
		}
		return
	}
	if err != nil || got != want {
		t.Errorf("%s(%q) = %q, %v; want %q", call, in, got, err, want)
	}
}

const (
	noChar  = "!holds a character"
	noEmpty = "!must not be empty"
	noLabel = "!empty label"
	noLong  = "!longer than 253"
	no63    = "!more than 63"
	noDash  = "!hyphen"
	noIP    = "!IP address"
	noPort  = "!bad port"
	noStar  = "!wildcard"
	noIDNA  = "!internationalised"
	noUTF8  = "!UTF-8"
)

func label(n int) string { return strings.Repeat("a", n) }

// octets returns a name of n octets, n > 192.
func octets(n int) string {
	l := label(63) + "."
	return l + l + l + label(n-192)
}

// TestHostname tests names in files and requests: both must reach the same canonical form.
func TestHostname(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := asked([]byte(in))
		checkName(t, "Append", in, got, err, want)
		got, err = hostname.Parse(in)
		checkName(t, "Parse", in, got, err, want)
		got, err = hostname.ParseDomain(in)
		checkName(t, "ParseDomain", in, got, err, want)
	}
	// Plain names.
	f("acme.example", "acme.example")
	f("Shop.ACME.Example", "shop.acme.example")
	f("acme.example.", "acme.example")
	f("localhost", "localhost")
	f("LOCALHOST.", "localhost")
	f("a", "a")
	f("3com.example", "3com.example")
	f("a-b.c--d.example", "a-b.c--d.example")
	f("ab--cd.example", "ab--cd.example")
	f("_dmarc.acme.example", "_dmarc.acme.example")
	f("a_b._tcp.example", "a_b._tcp.example")
	f("_", "_")
	f("1.2.3.com", "1.2.3.com")
	// Empty and truncated.
	f("", noEmpty)
	f(".", noEmpty)
	f("..", noLabel)
	f("a..b", noLabel)
	f(".a", noLabel)
	f("a.b..", noLabel)
	f("a...", noLabel)
	// Lengths.
	f(label(63)+".example", label(63)+".example")
	f(label(64)+".example", no63)
	f("example."+label(64), no63)
	f(octets(253), octets(253))
	f(octets(253)+".", octets(253))
	f(octets(254), noLong)
	f(octets(254)+".", noLong)
	f(octets(255), noLong)
	f(strings.Repeat("a.", 5000), noLong)
	f(strings.Repeat("ü", 5000), noLong)
	// Hyphens: DNS has such names, and wildcards cover them, but nobody declares one.
	for _, in := range []string{"-a.example", "a-.example", "a.-b", "a.b-", "-", "a.-.b"} {
		got, err := asked([]byte(in))
		checkName(t, "Append", in, got, err, in)
		got, err = hostname.ParseDomain(in)
		checkName(t, "ParseDomain", in, got, err, noDash)
	}
	// Addresses, also in the odd forms that URL parsers read as IPv4.
	f("127.0.0.1", noIP)
	f("127.0.0.1.", noIP)
	f("127.1", noIP)
	f("2130706433", noIP)
	f("0", noIP)
	f("0177.0.0.1", noIP)
	f("acme.08", noIP)
	f("0x7f.0.0.1", noIP)
	f("0X7F000001", noIP)
	f("acme.0x", noIP)
	f("a.0x1f", noIP)
	f("999.999.999.999", noIP)
	f("a.0xzz", "a.0xzz")
	f("1e3", "1e3")
	f("a.1b", "a.1b")
	f("::1", noIP)
	f("fe80::1", noIP)
	f("[::1]", noIP)
	f("[::1]:8080", noIP)
	f("[::]", noIP)
	// Bytes that no name contains.
	f("a b", noChar)
	f(" acme.example", noChar)
	f("acme.example ", noChar)
	f("a\tb", noChar)
	f("a\nb", noChar)
	f("a\rb", noChar)
	f("acme\x00.example", noChar)
	f("\x00", noChar)
	f("acme.example\x00", noChar)
	f("\x01.example", noChar)
	f("\x7f.example", noChar)
	f("a/b", noChar)
	f("a\\b", noChar)
	f("a@b", noChar)
	f("a?b", noChar)
	f("a#b", noChar)
	f("a%2eb", noChar)
	f("a,b", noChar)
	f("a'b", noChar)
	f("a\"b", noChar)
	f("(a)", noChar)
	f("a+b", noChar)
	f("[a]", noChar)
	f("a~b", noChar)
}

func TestHostnameIDN(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := asked([]byte(in))
		checkName(t, "Append", in, got, err, want)
		got, err = hostname.ParseDomain(in)
		checkName(t, "ParseDomain", in, got, err, want)
	}
	f("xn--bücher-kva.example", noIDNA) // the prefix, and more than ASCII behind it
	f("bücher.example", "xn--bcher-kva.example")
	f("Bücher.example", "xn--bcher-kva.example")
	f("BÜCHER.EXAMPLE.", "xn--bcher-kva.example")
	f("bu\u0308cher.example", "xn--bcher-kva.example") // decomposed
	f("xn--bcher-kva.example", "xn--bcher-kva.example")
	f("XN--BCHER-KVA.example", "xn--bcher-kva.example")
	f("_dmarc.bücher.example", "_dmarc.xn--bcher-kva.example")
	f("bü_cher.example", noIDNA)
	f("straße.example", "xn--strae-oqa.example") // not transitional
	f("ς.example", "xn--3xa.example")
	f("日本.example", "xn--wgv71a.example")
	f("☃.net", "xn--n3h.net")
	f("💩.la", "xn--ls8h.la")
	f("क्\u200dष.example", "xn--11b2ezcw70k.example") // a joiner in an allowed place
	f("نامه\u200cای.example", "xn--mgba3gch31f060k.example")
	f("م\u200c1.example", noIDNA) // browsers refuse it, too
	f("xn--1-ooc119q.example", noIDNA)
	f("م\u064e\u200c1.example", noIDNA)
	f("a\u200db.example", noIDNA) // and in a forbidden one
	// What UTS 46 maps to ASCII.
	f("ＡＣＭＥ.example", "acme.example")
	f("acme．example", "acme.example")
	f("acme\u3002example", "acme.example")
	f("acme\uff61example", "acme.example")
	f("acme.example\u3002", "acme.example")
	f("\u212aelvin.example", "kelvin.example")
	f("\u017f.example", "s.example")
	f("ﬀ.example", "ff.example")
	f("ac\u00adme.example", "acme.example")
	f("\ufeffacme.example", "acme.example")
	f("ｘn--bcher-kva.example", "xn--bcher-kva.example")
	f("x\u00adn--a.example", noIDNA)
	f("xn--bcher-kvaü.example", noIDNA)
	f("１２７.0.0.1", noIP)
	f("127.0.0.１", noIP)
	f("acme.example\u3002\u3002", noLabel)
	f("acme\u3002\u3002example", noLabel)
	f("\u3002acme", noLabel)
	f("ü..", noLabel)
	f("acme.example\u3002.", noLabel)
	f("\u00ad.example", noIDNA)
	// Mixed scripts: a label that breaks the bidi rule is refused; look-alikes are names like any other (UTS 46).
	f("p\u0430ypal.example", "xn--pypal-4ve.example")
	f("אב.example", "xn--4dbc.example")
	f("אa.example", noIDNA)
	f("1א.example", noIDNA)
	f("م1.example", "xn--1-ooc.example")
	f("٠.example", noIDNA)
	// A-labels that decode to nothing, to another label or not at all.
	f("xn--.example", noDash)
	f("xn--a.example", noIDNA)
	f("xn--0.example", noIDNA)
	f("xn--ascii-.example", noDash)
	f("xn--a-0hc.example", noIDNA)
	f("xn--xn--a--gua.example", noIDNA)
	f("ü.xn--", noIDNA)
	f("xn--á.example", noIDNA)
	f("xn--"+label(59)+".example", noIDNA)
	// Lengths count in A-labels.
	f(strings.Repeat("ä", 57)+".example", "xn--4c"+label(57)+".example")
	f(strings.Repeat("ä", 58)+".example", no63)
	f("ä"+label(62)+".example", no63)
	// Not text, not names.
	f("\xff.example", noUTF8)
	f("\xc3.example", noUTF8)
	f("b\xfccher.example", noUTF8)
	f("ü\x00.example", noChar)
	f("ü b.example", noChar)
	f("a\u0085.example", noIDNA)
	f("a\u2100b.example", noIDNA) // account of: maps to a/c
	f("a\u2025b.example", noIDNA) // two dot leader
	f("\u2488com", noIDNA)        // digit one full stop
	f("-ü.example", noIDNA)
	f("ü-.example", noIDNA)
}

// TestHostPort tests forms that only a client may send.
func TestHostPort(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := asked([]byte(in))
		checkName(t, "Append", in, got, err, want)
		// A record never has a port.
		if got, err := hostname.ParseDomain(in); err == nil || got != "" {
			t.Errorf("ParseDomain(%q) = %q, %v; want an error", in, got, err)
		}
	}
	f("Shop.Acme.Example.:8443", "shop.acme.example")
	f("acme.example:0", "acme.example")
	f("acme.example:65535", "acme.example")
	f("acme.example:00080", "acme.example")
	f("bücher.example:80", "xn--bcher-kva.example")
	f("bücher.example\u3002:80", "xn--bcher-kva.example")
	f("acme.example:", "acme.example")
	f("a-.acme.example:", "a-.acme.example")
	f("acme.example:65536", noPort)
	f("acme.example:000080", noPort)
	f("acme.example:99999", noPort)
	f("acme.example:+80", noPort)
	f("acme.example:-1", noPort)
	f("acme.example:8 0", noPort)
	f("acme.example:http", noPort)
	f("acme.example:80.", noPort)
	f("acme.example:8\x000", noPort)
	f(":80", noEmpty)
	f(".:80", noEmpty)
	f("127.0.0.1:80", noIP)
	f("[fe80::1%25eth0]:80", noIP)
	f("acme.example:80:80", noIP)
}

func TestWildcard(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := hostname.ParseDomain(in)
		checkName(t, "ParseDomain", in, got, err, want)
		if got, err := hostname.Parse(in); err == nil || got != "" {
			t.Errorf("Parse(%q) = %q, %v; want an error", in, got, err)
		}
		got, err = asked([]byte(in))
		if err == nil || got != "" {
			t.Errorf("Append(%q) = %q, %v; want an error", in, got, err)
		}
	}
	f("*.acme.example", "*.acme.example")
	f("*.ACME.example.", "*.acme.example")
	f("*.bücher.example", "*.xn--bcher-kva.example")
	f("*.example", "*.example")
	f("*.localhost", "*.localhost")
	f("*."+octets(251), "*."+octets(251))
	f("*."+octets(252), noLong)
	f("*", `!one "*"`)
	f("*.", noEmpty)
	f("*..", noEmpty)
	f("*..a", noLabel)
	f("*.*.acme.example", `!one "*"`)
	f("**.acme.example", `!one "*"`)
	f("a*.acme.example", `!one "*"`)
	f("*a.acme.example", `!one "*"`)
	f("acme.*", `!one "*"`)
	f("a.*.example", `!one "*"`)
	f("*.127.0.0.1", noIP)
	f("*.acme.example:80", "!port")
	f("\uff0a.acme.example.*", `!one "*"`)
}

// A full-width asterisk is no wildcard, however it is mapped.
func TestWildcardFullWidth(t *testing.T) {
	for _, in := range []string{"\uff0a.acme.example", "\uff0a\uff0eacme.example", "*\u3002acme.example", "*\uff0eacme.example"} {
		if got, err := hostname.ParseDomain(in); err == nil {
			t.Errorf("ParseDomain(%q) = %q; want an error", in, got)
		}
		if got, err := asked([]byte(in)); err == nil {
			t.Errorf("Append(%q) = %q; want an error", in, got)
		}
	}
}

func TestAppendHostKeepsPrefix(t *testing.T) {
	buf := make([]byte, 2, 2+hostname.MaxLen)
	copy(buf, "d:")
	raw := []byte("Shop.Acme.Example")
	host, idn, err := hostname.Append(buf, raw)
	if err != nil || idn || string(host) != "shop.acme.example" {
		t.Fatalf("Append = %q, %v, %v", host, idn, err)
	}
	if string(buf[:2+len(host)]) != "d:shop.acme.example" {
		t.Errorf("the array of dst holds %q", buf[:2+len(host)])
	}
	if string(raw) != "Shop.Acme.Example" {
		t.Errorf("the input became %q", raw)
	}
}

func TestNextWildcard(t *testing.T) {
	var got []string
	for suffix, ok := hostname.NextWildcard([]byte("a.b.c.example")); ok; suffix, ok = hostname.NextWildcard(suffix) {
		got = append(got, string(suffix))
	}
	if want := "b.c.example c.example example"; strings.Join(got, " ") != want {
		t.Errorf("suffixes %q, want %q", got, want)
	}
	if suffix, ok := hostname.NextWildcard([]byte("localhost")); ok {
		t.Errorf("NextWildcard(localhost) = %q", suffix)
	}
}

func TestAppendHostAllocations(t *testing.T) {
	var buf [hostname.MaxLen]byte
	f := func(in string) {
		t.Helper()
		raw := []byte(in)
		if n := testing.AllocsPerRun(200, func() { _, _, _ = hostname.Append(buf[:0], raw) }); n != 0 {
			t.Errorf("Append(%q): %v allocations, want 0", in, n)
		}
	}
	f("shop.acme.example")
	f("Shop.ACME.Example.:8443")
	f("xn--bcher-kva.example")
	f(octets(253) + ".")
	// Names that a flood would send cost nothing either.
	f("")
	f("a..b")
	f("127.0.0.1")
	f("[::1]:80")
	f("a\x00b")
	f("acme.example:99999")
	f(strings.Repeat("a", 10000))
}
