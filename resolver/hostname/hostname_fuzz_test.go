package hostname_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"fingerpost/resolver/hostname"
)

// FuzzHostname: no input panics, the output is canonical and a fixed point, and the form that resolve looks up is the
// form that a record is stored under.
func FuzzHostname(f *testing.F) {
	for _, s := range []string{
		"acme.example", "Shop.Acme.Example.:8443", "*.acme.example", "bücher.example", "xn--bcher-kva.example",
		"127.0.0.1", "[::1]:80", "0x7f.1", "a..b", "ü..", "acme\u3002example\u3002", "ｘn--bcher-kva", "a\x00b", "_a._b",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		host, err := asked(raw)
		if !bytes.Equal(raw, before) {
			t.Fatalf("the input changed from %q to %q", before, raw)
		}
		record, recordErr := hostname.ParseDomain(string(raw))
		checkCanonical(t, record, recordErr)
		if err != nil {
			if host != "" {
				t.Errorf("Append(%q) gives %q and %v", raw, host, err)
			}
			if recordErr == nil && !strings.HasPrefix(record, "*.") {
				t.Errorf("ParseDomain(%q) = %q, but resolve refuses it: %v", raw, record, err)
			}
			return
		}
		checkCanonical(t, host, nil)
		if hyphenAtAnEnd(host) {
			if recordErr == nil {
				t.Errorf("ParseDomain(%q) = %q, and no host has such a label", raw, record)
			}
		} else if !bytes.ContainsRune(raw, ':') && (recordErr != nil || record != host) {
			t.Errorf("resolve looks %q up as %q, a record is stored as %q, %v", raw, host, record, recordErr)
		}
		checkAllocations(t, raw)
	})
}

// hyphenAtAnEnd reports whether a label begins or ends with a hyphen: wildcards cover such a name, and no record has it.
func hyphenAtAnEnd(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return true
		}
	}
	return false
}

// checkCanonical checks that a name is short enough, has only allowed bytes, and passes both parsers unchanged.
func checkCanonical(t *testing.T, name string, err error) {
	t.Helper()
	if err != nil {
		if name != "" {
			t.Errorf("%q beside %v", name, err)
		}
		return
	}
	if len(name) == 0 || len(name) > hostname.MaxLen {
		t.Errorf("%q has %d octets", name, len(name))
	}
	base := strings.TrimPrefix(name, "*.")
	for _, label := range strings.Split(base, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("%q has the label %q", name, label)
		}
	}
	if again, err := hostname.ParseDomain(name); (err != nil || again != name) && !hyphenAtAnEnd(name) {
		t.Errorf("ParseDomain of the canonical %q = %q, %v", name, again, err)
	}
	if again, err := asked([]byte(base)); err != nil || again != base {
		t.Errorf("Append of the canonical %q = %q, %v", base, again, err)
	}
}

func checkAllocations(t *testing.T, raw []byte) {
	t.Helper()
	if len(raw) > hostname.MaxLen || bytes.ContainsFunc(raw, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return
	}
	var buf [hostname.MaxLen]byte
	if n := testing.AllocsPerRun(3, func() { _, _, _ = hostname.Append(buf[:0], raw) }); n != 0 {
		t.Errorf("Append(%q): %v allocations, want 0", raw, n)
	}
}
