package dcv_test

import (
	"strings"
	"testing"

	"fingerpost/configsrc/verify/dcv"
)

func TestProvesTXT(t *testing.T) {
	token := dcv.Token(acme, dcv.ScopeExact, "shop.acme.example")
	f := func(value string, want bool) {
		t.Helper()
		if got := dcv.ProvesTXT(strings.ReplaceAll(value, "T", token), token); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	for _, value := range []string{"token=T", "token=T expiry=never", "expiry=never token=T", "a;token=T;b", "token=T;",
		`"token=T"`, `"token=T expiry=never"`, " \ttoken=T\t", ` "token=T" `, "token=no token=T", "x  ;; token=T"} {
		f(value, true)
	}
	for _, value := range []string{"", "T", "token=", "token= T", "token =T", "Token=T", "token=T,", "token=T.", "xtoken=T",
		"token=TT", "token==T", `"token=T`, `token=T"`, `""token=T""`, `"token="T`, "token=T\x00", "token=T\u00a0x", "'token=T'"} {
		f(value, false)
	}
	f("token="+strings.ToUpper(token), false)
	f("token="+token[:25], false)
	f(strings.Repeat("x ", 32<<10)+"token=T", true)
}

// FuzzProvesTXT: a value proves at most what it has, and does so however it is quoted or surrounded.
func FuzzProvesTXT(f *testing.F) {
	token := dcv.Token(acme, dcv.ScopeExact, "shop.acme.example")
	for _, seed := range []string{"", "token=" + token, `"token=` + token + `" x`, "a;b", `"`, `""`, "token=\xff;"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if dcv.ProvesTXT(value, token) && !strings.Contains(value, "token="+token) {
			t.Errorf("%q proves without the token", value)
		}
		if dcv.ProvesTXT(value, "") && !strings.Contains(value, "token=") {
			t.Errorf("%q proves the empty token", value)
		}
		if with := strings.ReplaceAll(value, `"`, "") + " token=" + token; !dcv.ProvesTXT(with, token) ||
			!dcv.ProvesTXT(`"`+with+`"`, token) || !dcv.ProvesTXT("token="+token+";"+value, token) {
			t.Errorf("a field next to %q proves nothing", value)
		}
	})
}
