package hostname_test

import (
	"testing"

	"fingerpost/resolver/hostname"
)

func TestPublicSuffix(t *testing.T) {
	f := func(name string, is, listed bool) {
		t.Helper()
		if gotIs, gotListed := hostname.PublicSuffix(name); gotIs != is || gotListed != listed {
			t.Errorf("%s: %v, %v; want %v, %v", name, gotIs, gotListed, is, listed)
		}
	}
	for _, name := range []string{"com", "co.uk", "github.io", "xn--55qx5d.cn", "foo.kawasaki.jp"} {
		f(name, true, true)
		f("*."+name, true, true)
	}
	f("*.kawasaki.jp", true, true) // a rule of the list, with exceptions
	f("kawasaki.jp", false, false)
	f("city.kawasaki.jp", false, false)
	f("*.city.kawasaki.jp", false, false)
	for _, name := range []string{"localhost", "internal", "example", "a_b"} {
		f(name, true, false)
		f("*."+name, true, false)
	}
	for _, name := range []string{"acme.com", "acme.co.uk", "acme.github.io", "acme.example", "a.b.internal"} {
		f(name, false, false)
		f("*."+name, false, false)
	}
}

func TestRegistrableDomain(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got := hostname.RegistrableDomain(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	f("a.b.acme.co.uk", "acme.co.uk")
	f("acme.co.uk", "acme.co.uk")
	f("a.acme.github.io", "acme.github.io")
	f("a.city.kawasaki.jp", "city.kawasaki.jp")
	f("a.b.foo.kawasaki.jp", "b.foo.kawasaki.jp")
	f("a.b.internal", "b.internal")
	for _, name := range []string{"com", "co.uk", "foo.kawasaki.jp", "localhost"} {
		f(name, "")
	}
}
