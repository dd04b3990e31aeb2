package hostname_test

import (
	"testing"

	"fingerpost/resolver/hostname"
)

func TestMixedScript(t *testing.T) {
	f := func(label, want string) {
		t.Helper()
		name, err := hostname.ParseDomain(label)
		if err != nil {
			t.Fatalf("%s: %v", label, err)
		}
		if got := hostname.MixedScript(name); got != want {
			t.Errorf("%s (%s): got %q, want %q", label, name, got, want)
		}
	}
	f("acme.example", "")
	f("bücher.example", "")
	f("пример.example", "") // scripts are judged label by label
	f("аcme.example", "аcme")
	f("shop.аcme.example", "аcme")
	f("日本語.example", "")
	f("日本語abcかな.example", "")
	f("한국kr.example", "")
	f("αbc.example", "αbc")
	f("*.раураl.example", "раураl")
}
