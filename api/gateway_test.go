package api_test

import (
	"fmt"
	"strings"
	"testing"

	"fingerpost/api"
)

const (
	gateCheckURL = "/api/gate/check"
	gateAskURL   = "/api/gate/ask"
)

// reason checks the form that all errors of gateway calls have: a status, no body, and the code in X-Gate-Reason.
func (a *answer) reason(t testing.TB, name string, status int, code string) {
	t.Helper()
	got, message, _ := strings.Cut(a.Header.Get("X-Gate-Reason"), ": ")
	if a.StatusCode != status || got != code || status >= 400 && message == "" || len(a.body) > 0 || a.Header.Get("Content-Type") != "" {
		t.Errorf("%s: %d %q %q %q, want %d %s and no body", name, a.StatusCode, a.Header.Get("X-Gate-Reason"), a.Header.Get("Content-Type"), a.body, status, code)
	}
	if status >= 400 && (a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("X-Project-Id") != "" || a.Header.Get("X-User-Id") != "") {
		t.Errorf("%s: %v", name, a.Header)
	}
}

func TestGateCheck(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, method := range []string{"GET", "HEAD"} {
		a := h.ask(method, gateCheckURL+"?domain=x.ACME.example.:8443", h.onlyResolve)
		a.reason(t, method, 200, "")
		for name, want := range map[string]string{
			"X-Project-Id": "1", "X-Project-Slug": "acme", "X-Project-Status": "ACTIVE", "X-Matched-Domain": "*.acme.example", "X-Auth-Enabled": "false",
			"X-Registration-Mode": "OPEN", "Cache-Control": "private, max-age=5", "Vary": "X-PLATFORM-KEY, X-Original-URL, X-Forwarded-Host",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", method, name, got, want)
			}
		}
		if len(a.Header.Get("X-Project-Uuid")) != 36 || a.Header["X-User-Id"] != nil {
			t.Errorf("%s: %v", method, a.Header)
		}
		// The condition belongs to the gateway's client.
		for _, tag := range []string{a.Header.Get("ETag"), "*"} {
			h.ask(method, gateCheckURL+"?domain=x.acme.example", h.onlyResolve, "If-None-Match: "+tag).reason(t, "If-None-Match "+tag, 200, "")
		}
	}
	denied := func(domain, code string) {
		t.Helper()
		h.ask("GET", gateCheckURL+"?domain="+domain, h.all).reason(t, domain, 403, code)
		h.ask("HEAD", gateCheckURL+"?deny=403&domain="+domain, h.all).reason(t, domain, 403, code)
		h.ask("GET", gateCheckURL+"?domain="+domain+"&deny=404", h.all).reason(t, domain, 404, code)
	}
	denied("unknown.example", "NOT_FOUND")
	denied("off.acme.example", "DOMAIN_NOT_VERIFIED")
	denied("initech.example", "PROJECT_SUSPENDED")
	denied("127.0.0.1", "VALIDATION_ERROR")
	denied("*.acme.example", "VALIDATION_ERROR")
	denied("a..b", "VALIDATION_ERROR")
	denied("", "VALIDATION_ERROR")
	denied("%C3%BC.example", "NOT_FOUND")
	denied(strings.Repeat("a", 9000), "VALIDATION_ERROR")
	h.ask("GET", gateCheckURL+"?domain=xn--bcher-kva.example", h.all).reason(t, "IDN", 200, "")
	h.ask("GET", gateCheckURL+"?domain=B%C3%BCcher.example", h.all).reason(t, "IDN", 200, "")
}

// A question that is not understood is no denial: a gateway's configuration is wrong, and its first request shows that.
func TestGateBadParameters(t *testing.T) {
	t.Parallel()
	h := start(t)
	for query, want := range map[string]string{
		"domain=globex.example&domain=globex.example": "domain must be given once",
		"domain=%zz":             "domain has a %25 that two hexadecimal digits do not follow",
		"deny=500":               "deny must be 403 or 404",
		"deny=":                  "deny must be 403 or 404",
		"deny=403&deny=404":      "deny must be given once",
		"auth=yes":               "auth must be required or optional, or left out",
		"auth=required&auth=":    "auth must be given once",
		"auht=required":          "auht is no parameter of this call; the query of the gateway's client must not be passed on",
		"Auth=required":          "Auth is no parameter of this call; the query of the gateway's client must not be passed on",
		"a%0d%0ab=1":             "a%250d%250ab is no parameter of this call; the query of the gateway's client must not be passed on",
		"domain=globex.example#": "target has a #, and what follows would be lost",
		"deny=1&auth=2&x&domain=%": "domain has a %25 that two hexadecimal digits do not follow; deny must be 403 or 404; auth must be required or optional, or left out; " +
			"x is no parameter of this call; the query of the gateway's client must not be passed on",
	} {
		a := h.ask("GET", gateCheckURL+"?"+query, h.all)
		a.reason(t, query, 400, "VALIDATION_ERROR")
		if got := a.Header.Get("X-Gate-Reason"); got != "VALIDATION_ERROR: "+want {
			t.Errorf("%s: %s", query, got)
		}
	}
	h.ask("GET", gateAskURL, h.all).reason(t, "no domain", 400, "VALIDATION_ERROR")
	h.ask("GET", gateAskURL+"?domain=globex.example&auth=required", h.all).reason(t, "auth", 400, "VALIDATION_ERROR")
	h.ask("GET", gateAskURL+"?domain=globex.example&domain=globex.example", h.all).reason(t, "twice", 400, "VALIDATION_ERROR")
}

func TestGateAsk(t *testing.T) {
	t.Parallel()
	f := func(wildcards bool, domain string, status int, code string) {
		t.Helper()
		h := start(t, func(o *api.Options) { o.Gateway.Wildcards = wildcards })
		for _, method := range []string{"GET", "HEAD"} {
			h.ask(method, gateAskURL+"?domain="+domain, h.onlyRead).reason(t, domain, status, code)
			if status == 404 {
				h.ask(method, gateAskURL+"?deny=403&domain="+domain, h.onlyRead).reason(t, domain, 403, code)
				h.ask(method, gateAskURL+"?deny=404&domain="+domain, h.onlyRead).reason(t, domain, 404, code)
			}
		}
	}
	for _, wildcards := range []bool{false, true} {
		f(wildcards, "Shop.acme.example.", 200, "")
		f(wildcards, "globex.example", 200, "")
		f(wildcards, "off.acme.example", 404, "DOMAIN_NOT_VERIFIED")
		f(wildcards, "initech.example", 404, "PROJECT_SUSPENDED")
		f(wildcards, "unknown.example", 404, "NOT_FOUND")
		f(wildcards, "10.0.0.1", 404, "VALIDATION_ERROR")
	}
	f(false, "x.acme.example", 404, "FORBIDDEN")
	f(true, "x.acme.example", 200, "")
}

func TestGateKeys(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, path := range []string{gateCheckURL, gateAskURL} {
		for _, c := range []struct {
			key, domain string
			status      int
			code        string
		}{
			{h.onlyResolve, "globex.example", 200, ""},
			{h.onlyRead, "globex.example", 200, ""},
			{h.acmeResolve, "shop.acme.example", 200, ""},
			{h.onlyWrite, "globex.example", 403, "FORBIDDEN"},
			{h.onlyMail, "globex.example", 403, "FORBIDDEN"},
			{h.acmeResolve, "globex.example", 403, "FORBIDDEN"},
			{h.acmeResolve, "off.globex.example", 403, "FORBIDDEN"}, // its state does not show
			{h.acmeResolve, "initech.example&deny=404", 403, "FORBIDDEN"},
			{"", "globex.example", 401, "UNAUTHORIZED"},
			{h.revoked, "globex.example", 401, "UNAUTHORIZED"},
			{h.expired, "globex.example", 401, "UNAUTHORIZED"},
			{"x", "globex.example&deny=1", 401, "UNAUTHORIZED"},
			{h.onlyWrite, "globex.example&deny=1", 400, "VALIDATION_ERROR"},
		} {
			a := h.ask("GET", path+"?domain="+c.domain, c.key)
			a.reason(t, path+" "+c.domain, c.status, c.code)
			if c.status == 401 && a.Header.Get("WWW-Authenticate") != `ApiKey realm="fingerpost"` {
				t.Errorf("401 with %v", a.Header)
			}
		}
		a := h.ask("POST", path, h.all)
		a.reason(t, "POST", 405, "METHOD_NOT_ALLOWED")
		if a.Header.Get("Allow") == "" {
			t.Error("405 without Allow")
		}
		if a := h.ask("OPTIONS", path, h.onlyMail); a.StatusCode != 204 {
			t.Errorf("OPTIONS: %d", a.StatusCode)
		}
	}
	h.ask("GET", "/api/gate/none", h.all).reason(t, "an unknown path", 404, "NOT_FOUND")
	h.ask("GET", "/check?domain=globex.example", h.all).check(t, 404, "NOT_FOUND")
}

// The first of query, X-Original-URL, X-Forwarded-Host and Host that is there has the domain.
func TestGateDomain(t *testing.T) {
	t.Parallel()
	h := startAuth(t)
	for _, c := range []struct {
		host, query, headers string // of the request
		status               int
		found                string // a slug, or the code of the denial
	}{
		{"shop.example", "", "", 200, "shop"},
		{"Shop.Example.:8443", "", "", 200, "shop"},
		{"a.b.shop.example:80", "", "", 200, "shop"},
		{"bank.example", "", "X-Forwarded-Host: shop.example", 200, "shop"},
		{"bank.example", "", "X-Forwarded-Host: shop.example:8443 , twin.example", 200, "shop"},
		{"bank.example", "", "X-Forwarded-Host: shop.example\r\nX-Forwarded-Host: twin.example", 200, "shop"},
		{"bank.example", "", "X-Forwarded-Host:", 200, "bank"},
		{"bank.example", "", "X-Forwarded-Host: b\xc3\xbccher.shop.example", 200, "shop"},
		{"bank.example", "", "X-Forwarded-Host: *.shop.example", 403, "VALIDATION_ERROR"},
		{"twin.example", "", "X-Forwarded-Host: bank.example\r\nX-Original-URL: https://shop.example/a?b=c", 200, "shop"},
		{"bank.example", "", "X-Original-Url: wss://SHOP.example.:443", 200, "shop"},
		{"bank.example", "", "X-Original-URL: https://shop.example?x=://bank.example/", 200, "shop"},
		{"bank.example", "", "X-Original-URL: https://shop.example#@bank.example", 200, "shop"},
		{"bank.example", "", "X-Original-URL: https://b\xc3\xbccher.shop.example/", 200, "shop"},
		{"bank.example", "", "X-Original-URL:", 200, "bank"},
		{"bank.example", "", "X-Original-URL: https://bank.example@shop.example/", 403, "VALIDATION_ERROR"},
		{"bank.example", "", "X-Original-URL: https://user:secret@shop.example/", 403, "VALIDATION_ERROR"},
		{"bank.example", "", `X-Original-URL: https://shop.example\@bank.example/`, 403, "VALIDATION_ERROR"},
		{"bank.example", "", `X-Original-URL: https://shop.example\.bank.example/`, 403, "VALIDATION_ERROR"},
		{"bank.example", "", "X-Original-URL: https://shop%2eexample/", 403, "VALIDATION_ERROR"},
		{"bank.example", "", "X-Original-URL: https:///shop.example", 403, "VALIDATION_ERROR"},
		{"bank.example", "", "X-Original-URL: ://shop.example/", 403, "VALIDATION_ERROR"},
		{"bank.example", "", "X-Original-URL: /a?b=https://shop.example/", 403, "VALIDATION_ERROR"},
		{"bank.example", "", "X-Original-URL: shop.example", 403, "VALIDATION_ERROR"},
		{"bank.example", "", "X-Original-URL: https://[::1]/", 403, "VALIDATION_ERROR"},
		{"bank.example", "", "X-Original-URL: https://shop.example/\r\nX-Original-URL: https://bank.example/", 403, "VALIDATION_ERROR"},
		{"bank.example", "?domain=shop.example", "X-Original-URL: https://bank.example/\r\nX-Forwarded-Host: bank.example", 200, "shop"},
		{"bank.example", "?domain=%73hop.example:1", "", 200, "shop"},
		{"shop.example", "?domain=", "", 403, "VALIDATION_ERROR"},
		{"shop.example", "?domain", "", 403, "VALIDATION_ERROR"},
		{"127.0.0.1:8080", "", "", 403, "VALIDATION_ERROR"},
		{"[::1]:8080", "", "", 403, "VALIDATION_ERROR"},
		{"off.shop.example", "", "", 403, "DOMAIN_NOT_VERIFIED"},
		{"suspended.example", "", "", 403, "PROJECT_SUSPENDED"},
		{"unknown.example", "", "", 403, "NOT_FOUND"},
	} {
		w := h.dial()
		headers := c.headers
		if headers != "" {
			headers += "\r\n"
		}
		w.send("GET " + gateCheckURL + c.query + " HTTP/1.1\r\nHost: " + c.host + "\r\n" + headers + "X-PLATFORM-KEY: " + h.all + "\r\n\r\n")
		a := w.answer("GET")
		if c.status == 200 {
			a.reason(t, fmt.Sprint(c), 200, "")
		} else {
			a.reason(t, fmt.Sprint(c), c.status, c.found)
			c.found = ""
		}
		if got := a.Header.Get("X-Project-Slug"); got != c.found {
			t.Errorf("%+v: found %q", c, got)
		}
		w.Close()
	}
}
