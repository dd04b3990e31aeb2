package cluster

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

func TestPathsAsKeys(t *testing.T) {
	for _, path := range []string{"acme.hcl", "teams/shop/mail/welcome.html", "ü b*>.hcl", "=2E", "a=hb", strings.Repeat("ä", 600) + ".hcl"} {
		key := encodePath(path)
		if strings.ContainsAny(key, " .*>\t\r\n") || len(key) > maxKeyPath || key == "" {
			t.Errorf("the key of %q is %q, which is no token of a subject", path, key)
		}
		if back, ok := decodePath(key); ok && back != path || !ok && len(path) < 100 {
			t.Errorf("the key of %q is read as %q", path, back)
		}
	}
}

func TestRootDoesNotDependOnTheOrder(t *testing.T) {
	var a, b, none Root
	one, two := SumOf("a.hcl", []byte("x")), SumOf("b.hcl", []byte("y"))
	a.Add(one)
	a.Add(two)
	b.Add(two)
	b.Add(one)
	if a != b || a == none {
		t.Errorf("roots %s and %s", a, b)
	}
	b.Remove(one)
	b.Remove(two)
	if b != none {
		t.Errorf("what is left of nothing is %s", b)
	}
	if SumOf("ab", []byte("c")) == SumOf("a", []byte("bc")) {
		t.Error("a path and a content have the hash of others")
	}
	var full Sum
	for i := range full {
		full[i] = 0xff
	}
	b.Add(full)
	b.Add(Sum{31: 1})
	if b != none {
		t.Errorf("2^256 is %s modulo 2^256", b)
	}
}

// receive reads a message as a follower does.
func receive(m message) (f catalog.TreeFile, err error) {
	e, err := parseEntry(m.key, m.value)
	if err != nil {
		return f, err
	}
	return e.unpack()
}

func TestFilesInMessages(t *testing.T) {
	noise := make([]byte, 1<<20)
	rand.Read(noise)
	at := time.Date(2026, 1, 31, 9, 30, 0, 123456000, time.UTC)
	// As many as fit into the largest file, because no block is shorter than this one.
	domains := make([]catalog.ObjectTime, len(noise)/len("domain\"a.bb\"{}\n"))
	for i := range domains {
		domains[i] = catalog.ObjectTime{Kind: catalog.KindDomain, CreatedAt: at, UpdatedAt: at}
		rand.Read(domains[i].UUID[:])
	}
	for _, f := range []catalog.TreeFile{
		{Path: "empty.hcl"},
		{Path: "domains.hcl", Bytes: noise, Times: domains},
		{Path: "a/b.hcl", Bytes: []byte("project \"a\" {}\n"), Times: []catalog.ObjectTime{{Kind: catalog.KindProject, UUID: catalog.UUID{1}, CreatedAt: at, UpdatedAt: at.Add(time.Microsecond)}}},
		{Path: "mail/large.html", Bytes: noise},
	} {
		m, sum := pack(&f)
		got, err := receive(m)
		if err != nil || got.Path != f.Path || !bytes.Equal(got.Bytes, f.Bytes) || len(got.Times) != len(f.Times) {
			t.Errorf("%s comes out as %q, %v", f.Path, got.Path, err)
		}
		for i := range got.Times {
			if got.Times[i] != f.Times[i] {
				t.Errorf("times %v come out as %v", f.Times[i], got.Times[i])
			}
		}
		if sum != SumOf(f.Path, f.Bytes) {
			t.Errorf("%s has another sum", f.Path)
		}
	}
}

func TestDamagedMessagesAreRefused(t *testing.T) {
	f := catalog.TreeFile{Path: "a.hcl", Bytes: []byte("project \"a\" {}\n")}
	good, _ := pack(&f)
	for i := range good.value {
		bad := bytes.Clone(good.value)
		bad[i] ^= 0x40
		if got, err := receive(message{good.key, bad}); err == nil && !bytes.Equal(got.Bytes, f.Bytes) {
			t.Errorf("with byte %d changed it is taken as %q", i, got.Bytes)
		}
		if _, err := receive(message{good.key, good.value[:i]}); err == nil {
			t.Errorf("cut off after %d bytes it is taken", i)
		}
	}
	if _, err := receive(message{prefixFile + encodePath("b.hcl"), good.value}); err == nil {
		t.Error("a message under another file's key is taken")
	}
	if _, err := receive(message{good.key, make([]byte, 64<<20)}); err == nil {
		t.Error("64 MiB of zeros are taken")
	}
	climbing := catalog.TreeFile{Path: "../a.hcl"}
	m, _ := pack(&climbing)
	if _, err := receive(m); err == nil {
		t.Error("a path that leads out of the folder is taken")
	}
}

func FuzzMessage(f *testing.F) {
	m, _ := pack(&catalog.TreeFile{Path: "a.hcl", Bytes: []byte("x"), Times: []catalog.ObjectTime{{Kind: catalog.KindDomain}}})
	f.Add(m.key, m.value)
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		e, err := parseEntry(key, value)
		if err != nil {
			return
		}
		if got, err := e.unpack(); err == nil && SumOf(got.Path, got.Bytes) != e.sum {
			t.Errorf("%q is taken with another sum", got.Path)
		}
	})
}
