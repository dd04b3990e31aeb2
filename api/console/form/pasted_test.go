package form_test

import (
	"slices"
	"strings"
	"testing"

	"fingerpost/api/console/form"
)

func TestHost(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		if got := form.Host(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	f("shop.acme.example", "shop.acme.example")
	f("  Shop.ACME.example.  ", "shop.acme.example")
	f("https://shop.acme.example/cart?id=7#top", "shop.acme.example")
	f("HTTPS://User:secret@Shop.acme.example:8443/cart", "shop.acme.example")
	f("shop.acme.example:443", "shop.acme.example")
	f("shop.acme.example/cart", "shop.acme.example")
	f("//shop.acme.example/cart", "shop.acme.example")
	f("ada@shop.acme.example", "shop.acme.example")
	f("mailto:ada@shop.acme.example", "shop.acme.example")
	f("Ada Lovelace <ada@shop.acme.example>", "shop.acme.example")
	f("please see https://shop.acme.example/cart, thank you", "shop.acme.example")
	f("\u200bshop.acme.example\ufeff", "shop.acme.example")
	f("“shop.acme.example”", "shop.acme.example")
	f("https://müller.example/ä?q=ß", "müller.example")
	f("shop。acme。example。", "shop。acme。example") // IDNA makes dots of them
	f("https://shop.acme.example/%zz", "shop.acme.example")
	f(`\\shop.acme.example\share`, "") // no URL: refused as empty
	f("*.acme.example", "*.acme.example")
	f("localhost:8080", "localhost")
	f("127.0.0.1:80", "127.0.0.1")
	f("shop acme", "shop acme")
	f("", "")
	f(" . ", "")
	f("https://", "")
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"https://a:b@shop.example:1/x", "a@b.example", "[::1]:80", "a b.c", "://", "@", "..."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host := form.Host(text)
		if again := form.Host(host); again != host && !strings.ContainsAny(host, "@:/ ") {
			t.Errorf("%q is %q, which is %q", text, host, again)
		}
		form.Pieces(host)
		form.Near(host, []string{"shop.example", host}, 3)
	})
}

func TestNear(t *testing.T) {
	t.Parallel()
	names := []string{"shop.acme.example", "*.acme.example", "old.acme.example", "shop.beta.example", "acme.example"}
	f := func(host string, want ...string) {
		t.Helper()
		if got := form.Near(host, names, 3); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
	f("shp.acme.example", "shop.acme.example", "old.acme.example", "acme.example")
	f("shop.acmee.example", "shop.acme.example")
	f("www.beta.example", "shop.beta.example")
	f("example", nil...)
	f("quite.different.test", nil...)
}

// A name with one wrong character is found by the text of a search for one of the pieces.
func TestPieces(t *testing.T) {
	t.Parallel()
	name := "storefront.acme-shop.example"
	for at := range strings.LastIndexByte(name, '.') {
		if name[at] == '.' {
			continue
		}
		wrong := name[:at] + "x" + name[at+1:]
		if pieces := form.Pieces(wrong); !slices.ContainsFunc(pieces, func(p string) bool { return strings.Contains(name, p) }) {
			t.Errorf("%s: none of %q is in %s", wrong, pieces, name)
		}
	}
	if n := len(form.Pieces(strings.Repeat("abcdefgh.", 20) + "example")); n > 7 {
		t.Errorf("%d searches for one host", n)
	}
}
