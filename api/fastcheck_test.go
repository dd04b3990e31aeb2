package api

import (
	"bytes"
	"strings"
	"testing"
)

const checkStart = "GET /check HTTP/1.1\r\nHost: shop.acme.example\r\n"

func checkOf(query string) string {
	return strings.Replace(checkStart, "/check", "/check?"+query, 1)
}

// browserHeader is what a gateway passes on of its client.
const browserHeader = "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: text/html,*/*;q=0.8\r\nAccept-Language: de\r\nAccept-Encoding: gzip, br, zstd\r\n" +
	"Cookie: session=0123456789abcdef; theme=dark\r\nReferer: https://shop.acme.example/\r\nSec-Fetch-Mode: navigate\r\nsec-ch-ua: \"Chromium\";v=\"130\"\r\n" +
	"Upgrade-Insecure-Requests: 1\r\nIf-None-Match: \"x\"\r\nIf-Modified-Since: Tue, 24 Nov 2026 03:52:59 GMT\r\nRange: bytes=0-1\r\nCache-Control: no-cache\r\n"

// plainChecks are those that the fast path is for.
var plainChecks = []string{
	checkStart + "\r\n",
	checkStart + browserHeader + "\r\n",
	checkStart + browserHeader + "X-Original-URL: https://shop.acme.example/orders?a=b\r\nX-Forwarded-Host: other.example\r\n\r\n",
	checkStart + "X-Original-Url: http://SHOP.acme.example.:8443\r\nX-Request-Id: mine.1\r\n\r\n",
	checkStart + "X-Forwarded-Host: shop.acme.example:80 , other.example\r\nX-Forwarded-Host: other.example\r\n\r\n",
	checkStart + "X-Forwarded-Host:\r\nX-Forwarded-Host: other.example\r\n\r\n",
	checkStart + "Connection: keep-alive\r\nAuthorization: Bearer x.y.z\r\n\r\n",
	checkStart + "Authorization: Basic dTpw\r\nAuthorization: Basic dTpw\r\n\r\n",
	checkStart + "X-Platform-Key: {key}\r\nIf-None-Match: *\r\n\r\n",
	checkOf("") + "\r\n",
	checkOf("deny=404&auth=optional") + "X-Request-Id: not mine!\r\n\r\n",
	checkOf("auth=optional&domain=shop.acme.example") + "X-Original-URL: nonsense\r\n\r\n",
	checkOf("domain=shop%2eacme.example.&&deny=%34%303") + "\r\n",
	strings.Replace(checkStart, "shop", "SHOP", 1) + "x-forwarded-for: 192.0.2.1\r\n\r\n",
	strings.Replace(checkStart, ".example", ".example.:443", 1) + "\r\n",
	checkOf("auth=required") + "Authorization: Bearer {token}\r\n\r\n",
	checkOf("auth=optional&deny=404") + browserHeader + "authorization: bearer  {token} \r\nX-Request-Id: mine.1\r\n\r\n",
	checkOf("auth=required") + "Authorization: Bearer {odd}\r\nX-Original-URL: https://shop.acme.example/\r\n\r\n",
}

// otherChecks must be left to the handler, or be answered as it answers.
var otherChecks = []string{
	strings.Replace(checkStart, "GET", "HEAD", 1) + "\r\n",
	strings.Replace(checkStart, "GET", "POST", 1) + "Content-Length: 0\r\n\r\n",
	strings.Replace(checkStart, "/check", "/checks", 1) + "\r\n",
	strings.Replace(checkStart, "/check", "/check/", 1) + "\r\n",
	strings.Replace(checkStart, "/check", "/check;auth=optional/x", 1) + "\r\n",
	strings.Replace(checkStart, "/check", "/ask?domain=shop.acme.example", 1) + "\r\n",
	strings.Replace(checkStart, "/check", "http://shop.acme.example/check", 1) + "\r\n",
	strings.Replace(checkStart, "shop.acme", "unknown", 1) + "\r\n",
	strings.Replace(checkStart, "shop.acme.example", "[::1]", 1) + "\r\n",
	strings.Replace(checkStart, "shop.acme.example", "a@b", 1) + "\r\n",
	strings.Replace(checkStart, "shop.acme.example", "", 1) + "\r\n",
	strings.Replace(checkStart, "Host: shop.acme.example\r\n", "", 1) + "\r\n",
	strings.Replace(checkStart, "HTTP/1.1", "HTTP/1.0", 1) + "\r\n",
	checkOf("auth=required") + "\r\n",
	checkOf("auth=required") + "Authorization: Bearer {theirs}\r\n\r\n",
	checkOf("auth=required") + "Authorization: Bearer {token}x\r\n\r\n",
	checkOf("auth=required") + "Authorization: {token}\r\n\r\n",
	checkOf("auth=required") + "Authorization: Bearer {token}\r\nAuthorization: Bearer {token}\r\n\r\n",
	checkOf("auth=required") + strings.Repeat("Authorization: Bearer {token}\r\n", 3) + "\r\n",
	strings.Replace(checkOf("auth=required"), "shop.acme", "unknown", 1) + "Authorization: Bearer {token}\r\n\r\n",
	checkOf("auth=required") + "Authorization: Bearer x.y.z\r\n\r\n",
	checkOf("auth=optional") + "Authorization: Bearer x.y.z\r\n\r\n",
	checkOf("auth=optional") + "authorization: Basic dTpw\r\n\r\n",
	checkOf("auth=optional") + "AUTHORIZATION: Bearer x.y.z\r\n\r\n",
	checkOf("auth=optional") + "Authorization:\r\n\r\n",
	checkOf("auth=no") + "\r\n",
	checkOf("deny=404&deny=404") + "\r\n",
	checkOf("domain=shop.acme.example&domain=shop.acme.example") + "\r\n",
	checkOf("domain=shop.acme.example#&auth=required") + "\r\n",
	checkOf("domain=%zz") + "\r\n",
	checkOf("domain=") + "\r\n",
	checkOf("domain") + "\r\n",
	checkOf("domain=shop.acme.example+") + "\r\n",
	checkOf("x=1") + "\r\n",
	checkOf("domain=unknown.example&deny=404") + "\r\n",
	checkOf("domain=shop.acme.example ") + "\r\n",
	checkStart + "X-Original-URL: https://user@shop.acme.example/\r\n\r\n",
	checkStart + "X-Original-URL: shop.acme.example\r\n\r\n",
	checkStart + "X-Original-URL: https://shop.acme.example/\r\nX-Original-URL: https://shop.acme.example/\r\n\r\n",
	checkStart + "X-ORIGINAL-URL: https://unknown.example/\r\n\r\n",
	checkStart + "x-forwarded-HOST: unknown.example\r\n\r\n",
	checkStart + "X-Original-URL:\r\n\r\n",
	checkStart + "HOST: unknown.example\r\n\r\n",
	checkStart + "Host: shop.acme.example\r\n\r\n",
	checkStart + "Connection: close\r\n\r\n",
	checkStart + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	checkStart + "Content-Length: 4\r\n\r\nbody",
	checkStart + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	checkStart + "Expect: 100-continue\r\n\r\n",
	checkStart + "Trailer: x\r\n\r\n",
	checkStart + "Cookie: \xff\r\n\r\n",
	checkStart + "Strange!: x\r\n\r\n",
	checkStart + "X-REQUEST-ID: mine\r\n\r\n",
	checkStart + "Sp ace: x\r\n\r\n",
}

// TestFastCheckIsTheHandler: the two ways to answer a check give the same bytes.
func TestFastCheckIsTheHandler(t *testing.T) {
	s, fill := fastServer(t)
	for _, text := range plainChecks {
		request := fill(text)
		fast, slow := steady(s.askGate(request, Gateway)), steady(s.askLibrary(request, Gateway))
		if !strings.HasPrefix(fast, "HTTP/1.1 200 ") || fast != slow {
			t.Errorf("%q\nis answered\n%s\nby the fast path, and\n%s\nby the handler", request, fast, slow)
		}
	}
	for _, text := range otherChecks {
		request := fill(text)
		if fast := s.askGate(request, Gateway); len(fast) > 0 {
			t.Errorf("%q\nis answered\n%s\nby the fast path", request, fast)
		}
		got, want := steady(s.askEither(request, Gateway)), steady(s.askLibrary(request, Gateway))
		if !strings.HasPrefix(want, "HTTP/1.1 ") || got != want {
			t.Errorf("%q\nis answered\n%s\nwith a fast path, and\n%s\nwithout", request, got, want)
		}
	}
	// The two listeners do not answer each other's questions.
	for _, text := range plainRequests {
		if got := s.askEither(fill(text), Gateway); !bytes.HasPrefix(got, []byte("HTTP/1.1 404 ")) && !bytes.HasPrefix(got, []byte("HTTP/1.1 400 ")) {
			t.Errorf("resolve on a gateway listener: %s", got)
		}
	}
	if got := s.askEither(fill(plainChecks[0])); !bytes.HasPrefix(got, []byte("HTTP/1.1 404 ")) {
		t.Errorf("check on the main listener: %s", got)
	}
	if n := s.gate.Open(); n != 0 {
		t.Errorf("%d connections still count", n)
	}
}

// TestFastCheckCounts: each check counts once, by either way.
func TestFastCheckCounts(t *testing.T) {
	s, fill := fastServer(t)
	count := func() (passed, lookups uint64) {
		for i := range s.metrics.checked {
			for j := range s.metrics.checked[i].buckets {
				passed += s.metrics.checked[i].buckets[j].Load()
			}
		}
		m := s.resolver.Metrics()
		return passed, m.Hits + m.NegativeHits + m.Misses
	}
	ask := func(text string, fast bool, wantPassed uint64) {
		t.Helper()
		passed, lookups := count()
		_ = s.http.ServeConn(s.admit(newRecordedConn(fill(text)), fast, Gateway))
		passedNow, lookupsNow := count()
		if passedNow-passed != wantPassed || lookupsNow-lookups != 1 {
			t.Errorf("%q, fast %v: %d passed with %d look-ups, want %d with 1", text, fast, passedNow-passed, lookupsNow-lookups, wantPassed)
		}
	}
	for _, fast := range []bool{true, false} {
		ask(plainChecks[0], fast, 1)
		ask(plainChecks[10], fast, 1)
		ask(checkOf("auth=required")+"Authorization: Bearer {token}\r\n\r\n", fast, 1)
		ask(checkOf("auth=required")+"Authorization: Bearer {theirs}\r\n\r\n", fast, 0)
		ask(strings.Replace(checkStart, "shop.acme", "unknown", 1)+"\r\n", fast, 0)
	}
}

// TestFastCheckStepsAside: the handler answers peers that may not ask, and everybody while the service loads.
func TestFastCheckStepsAside(t *testing.T) {
	s, fill := fastServer(t)
	request := fill(plainChecks[0])
	if len(s.askGate(request, Gateway)) == 0 {
		t.Fatal("the fast path is not taken")
	}
	s.SetLoading(true)
	if len(s.askGate(request, Gateway)) > 0 {
		t.Error("taken while loading")
	}
	s.SetLoading(false)
	peer := newRecordedConn(request)
	c := s.admit(peer, true, Gateway)
	c.State.(*conn).outside = true
	if _ = s.http.ServeConn(c); !strings.HasPrefix(peer.got.String(), "HTTP/1.1 403 ") {
		t.Errorf("a peer outside gets %s", peer.got.String())
	}
}

// FuzzFastCheck: a gateway's connection with the fast path gives the same bytes as one without.
func FuzzFastCheck(f *testing.F) {
	for _, request := range append(plainChecks, otherChecks...) {
		f.Add(request)
	}
	s, fill := fastServer(f)
	f.Fuzz(func(t *testing.T, text string) {
		request := fill(text)
		if len(request) == 0 || len(request) > s.o.Limits.HeaderBytes {
			return
		}
		got, want := steady(s.askEither(request, Gateway)), steady(s.askLibrary(request, Gateway))
		if got != want {
			t.Fatalf("%q\nis answered\n%s\nwith a fast path, and\n%s\nwithout", request, got, want)
		}
	})
}
