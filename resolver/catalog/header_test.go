package catalog_test

import (
	"testing"

	"fingerpost/resolver/catalog"
)

func TestAppendHeaderText(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := string(catalog.AppendHeaderText([]byte("> "), text)); got != "> "+want {
			t.Errorf("%q is %q, want %q", text, got, "> "+want)
		}
	}
	f("", "")
	f("gold", "gold")
	f(`a "b"; c=d, e:f`, `a "b"; c=d, e:f`)
	f(" a b ", "%20a b%20")
	f("100%", "100%25")
	f("a\r\nX-Project-Id: 1", "a%0D%0AX-Project-Id: 1")
	f("bücher\x00\x7f\t", "b%C3%BCcher%00%7F%09")
}
