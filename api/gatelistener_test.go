package api_test

import (
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/api"
)

// gate returns a house whose requests go to a gateway listener.
func (h *house) gate() *house {
	at := *h
	at.addr = h.listen(api.Gateway)
	return &at
}

// onWire sends a request with further header lines and reads the answer.
func onWire(w *wire, method, target, host string, headers ...string) *answer {
	w.t.Helper()
	w.send(strings.Join(append([]string{method + " " + target + " HTTP/1.1", "Host: " + host}, headers...), "\r\n") + "\r\n\r\n")
	return w.answer(method)
}

func TestGateListener(t *testing.T) {
	t.Parallel()
	h := startAuth(t).gate()
	good := bearer(hs256(t, shopSecret, claims(11)))
	f := func(method, target, host string, status int, found string, headers ...string) *answer {
		t.Helper()
		w := h.dial()
		defer w.Close()
		a := onWire(w, method, target, host, headers...)
		name := method + " " + target + " of " + host
		if status == 200 {
			a.reason(t, name, 200, "")
			if got := a.Header.Get("X-Project-Slug"); got != found {
				t.Errorf("%s: found %q, want %q", name, got, found)
			}
			return a
		}
		a.reason(t, name, status, found)
		return a
	}
	if vary := f("GET", "/check", "Shop.Example.:443", 200, "shop").Header.Get("Vary"); vary != "X-Original-URL, X-Forwarded-Host" {
		t.Errorf("Vary: %s", vary)
	}
	f("GET", "http://bank.example/check", "shop.example", 200, "bank") // RFC 9112, 3.2.2
	f("GET", "/check?domain=bank.example", "shop.example", 200, "bank")
	f("GET", "/check?auth=required", "shop.example", 401, "UNAUTHORIZED")
	if a := f("GET", "/check?auth=required", "shop.example", 200, "shop", good); a.Header.Get("X-User-Id") != "u-1" {
		t.Errorf("%v", a.Header)
	}
	f("GET", "/check?deny=404", "unknown.example", 404, "NOT_FOUND")
	f("GET", "/check", "unknown.example", 403, "NOT_FOUND")
	f("GET", "/check?deny=x", "unknown.example", 400, "VALIDATION_ERROR")
	// Gateways ask with the method of their client.
	for _, method := range []string{"HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
		f(method, "/check", "shop.example", 200, "shop", "Content-Length: 0")
		f(method, "/check", "unknown.example", 403, "NOT_FOUND")
	}
	f("GET", "/ask?domain=shop.example", "gate", 200, "")
	f("HEAD", "/ask?domain=shop.example", "gate", 200, "")
	f("GET", "/ask?domain=x.shop.example", "gate", 404, "FORBIDDEN")
	f("GET", "/ask?domain=x.shop.example&deny=403", "gate", 403, "FORBIDDEN")
	f("GET", "/ask", "shop.example", 400, "VALIDATION_ERROR")
	if allow := f("POST", "/ask?domain=shop.example", "gate", 405, "METHOD_NOT_ALLOWED").Header.Get("Allow"); allow != "GET, HEAD" {
		t.Errorf("Allow: %s", allow)
	}
	// Nothing else is there, with a key or without.
	for _, path := range []string{"/", "/checks", "/check%20", "/Check", "//check", "/ask/", "/ask/x", "/x/check", gateCheckURL, healthURL, "/api/mail/health", resolveURL + "?domain=shop.example", mePath, "/api/openapi.yaml"} {
		f("GET", path, "shop.example", 404, "NOT_FOUND", "X-PLATFORM-KEY: "+h.all)
	}
	// What is malformed has no body either.
	w := h.dial()
	w.send("GET /check HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
	w.answer("GET").reason(t, "bad framing", 400, "VALIDATION_ERROR")
	w.closed()
	f("GET", "/check", "shop.example", 431, "HEADERS_TOO_LARGE", "X-Large: "+strings.Repeat("x", 20<<10))
}

// Envoy puts its prefix before the target of its client: what follows is the client's, and must not change the question.
func TestGatePrefix(t *testing.T) {
	t.Parallel()
	h := startAuth(t).gate()
	good := bearer(hs256(t, shopSecret, claims(11)))
	f := func(target string, status int, found string, headers ...string) {
		t.Helper()
		w := h.dial()
		defer w.Close()
		a := onWire(w, "PUT", target, "shop.example", append(headers, "Content-Length: 0")...)
		if status == 200 {
			a.reason(t, target, 200, "")
			found = "shop"
		} else {
			a.reason(t, target, status, found)
			found = ""
		}
		if got := a.Header.Get("X-Project-Slug"); got != found {
			t.Errorf("%s: found %q", target, got)
		}
	}
	for _, rest := range []string{"/", "/orders", "/orders?page=2", "/?domain=bank.example", "/?deny=404&auth=optional", "/;auth=optional", "/%zz?%zz&x", "//bank.example/", "/check", "/?" + strings.Repeat("x", 8000)} {
		f("/check"+rest, 200, "")
		f("/check"+rest, 200, "", "X-Original-URL: http://bank.example/", "X-Forwarded-Host: bank.example")
		f("/check;auth=required"+rest, 401, "UNAUTHORIZED")
		f("/check;auth=required"+rest, 200, "", good)
		f("/check;auth=optional;deny=404"+rest, 200, "")
		f("/check;auth=require"+rest, 400, "VALIDATION_ERROR", good)
		f("/check;domain=bank.example"+rest, 400, "VALIDATION_ERROR")
	}
	f("/check;auth=required", 401, "UNAUTHORIZED")
	f("/check;auth=required*", 400, "VALIDATION_ERROR", good)
	f("/check*", 404, "NOT_FOUND")
}

// A gateway may pass on its client's Content-Length and not the body. The next request is not taken for that body.
func TestGateBodies(t *testing.T) {
	t.Parallel()
	h := start(t).gate()
	for _, length := range []string{"Content-Length: 50", "Content-Length: 5000000", "Transfer-Encoding: chunked"} {
		w := h.dial()
		a := onWire(w, "POST", "/check", "globex.example", length)
		a.reason(t, length, 200, "")
		if !a.Close {
			t.Errorf("%s: the connection goes on: %v", length, a.Header)
		}
		w.Close()
	}
	w := h.dial()
	defer w.Close()
	for range 3 { // a body that has come is dropped
		w.send("POST /check HTTP/1.1\r\nHost: globex.example\r\nContent-Length: 4\r\n\r\nbody")
		w.answer("POST").reason(t, "with a body", 200, "")
	}
}

func TestGatePeers(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *api.Options) {
		o.Gateway.Allow = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8::/64")}
	})
	serve := func(ln net.Listener, err error) net.Addr {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		go func() { h.served <- h.server.Serve(ln, api.Gateway) }()
		return ln.Addr()
	}
	for addr, allowed := range map[string]bool{
		"127.0.0.1": true, "127.8.8.8": true, "::1": true, "::ffff:127.0.0.1": true, "10.1.2.3": true, "::ffff:10.1.2.3": true, "2001:db8::7": true,
		"10.2.0.1": false, "192.168.0.1": false, "203.0.113.9": false, "2001:db8:0:1::7": false, "fe80::1": false, "::": false,
	} {
		ln, err := api.Listen("127.0.0.1:0")
		at := *h
		peer := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 5000))
		at.addr = serve(fromListener{ln, peer}, err).String()
		for _, target := range []string{"/check", "/ask?domain=globex.example", "/check/x"} {
			w := at.dial()
			a := onWire(w, "GET", target, "globex.example")
			if allowed {
				a.reason(t, addr+" "+target, 200, "")
			} else {
				a.reason(t, addr+" "+target, 403, "FORBIDDEN")
				w.closed()
			}
			w.Close()
		}
	}
	path := filepath.Join(t.TempDir(), "s")
	ln, err := api.Listen("unix:" + path)
	serve(ln, err)
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	onWire(newWire(t, c), "GET", "/check", "globex.example").reason(t, "over a Unix socket", 200, "")
}

func TestGateLoading(t *testing.T) {
	t.Parallel()
	h := start(t)
	at := h.gate()
	h.server.SetLoading(true)
	w := at.dial()
	defer w.Close()
	for _, target := range []string{"/check", "/ask?domain=globex.example"} {
		a := onWire(w, "GET", target, "globex.example")
		a.reason(t, target, 503, "UNAVAILABLE")
		if a.Header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
	}
	h.ask("GET", gateCheckURL, h.all).reason(t, "main listener", 503, "UNAVAILABLE")
	h.server.SetLoading(false)
	onWire(w, "GET", "/check", "globex.example").reason(t, "loaded", 200, "")
}
