package api

import (
	"strings"
	"testing"
)

const (
	meStart = "GET /api/auth/me?domain=shop.acme.example HTTP/1.1\r\nHost: localhost:8080\r\n"
	meToken = "Authorization: Bearer {token}\r\n"
)

// plainMes are those that the fast path is for.
var plainMes = []string{
	meStart + meToken + "\r\n",
	meStart + browserHeader + meToken + "X-Request-Id: mine.1\r\n\r\n",
	meStart + "authorization: bearer  {token} \r\nX-Request-Id: not mine!\r\n\r\n",
	meStart + "Authorization: Bearer {odd}\r\n\r\n",
	strings.Replace(meStart, "shop.acme.example", "SHOP.acme.example.:443", 1) + meToken + "\r\n",
	strings.Replace(meStart, "?domain=shop.acme.example", "", 1) + "X-Forwarded-Host: shop.acme.example , other.example\r\n" + meToken + "\r\n",
	strings.Replace(strings.Replace(meStart, "domain=shop.acme.example", "", 1), "localhost", "shop.acme.example", 1) + meToken + "\r\n",
	meStart + "X-Original-URL: https://other.example/\r\nX-Forwarded-Host: other.example\r\n" + meToken + "\r\n",
}

// otherMes must be left to the handler, or be answered as it answers.
var otherMes = []string{
	strings.Replace(meStart, "GET", "HEAD", 1) + meToken + "\r\n",
	strings.Replace(meStart, "GET", "POST", 1) + meToken + "Content-Length: 0\r\n\r\n",
	strings.Replace(meStart, "/me", "/mex", 1) + meToken + "\r\n",
	strings.Replace(meStart, "/me", "/me/", 1) + meToken + "\r\n",
	strings.Replace(meStart, "domain=shop.acme", "domain=shop%2eacme", 1) + meToken + "\r\n",
	strings.Replace(meStart, ".example ", ".example+ ", 1) + meToken + "\r\n",
	strings.Replace(meStart, ".example ", ".example#x ", 1) + meToken + "\r\n",
	strings.Replace(meStart, ".example ", ".example;x ", 1) + meToken + "\r\n",
	strings.Replace(meStart, ".example ", ".example&domain=b.example ", 1) + meToken + "\r\n",
	strings.Replace(meStart, ".example ", ".example&x=1 ", 1) + meToken + "\r\n",
	strings.Replace(meStart, "domain=shop.acme.example", "domain=", 1) + meToken + "\r\n",
	strings.Replace(meStart, "domain=shop.acme.example", "x=1", 1) + meToken + "\r\n",
	strings.Replace(meStart, "shop.acme", "unknown", 1) + meToken + "\r\n",
	strings.Replace(meStart, "?domain=shop.acme.example", "", 1) + "X-Forwarded-Host: unknown.example\r\n" + meToken + "\r\n",
	strings.Replace(meStart, "HTTP/1.1", "HTTP/1.0", 1) + meToken + "\r\n",
	meStart + "\r\n",
	meStart + "Authorization: Bearer {theirs}\r\n\r\n",
	meStart + "Authorization: Bearer {token}x\r\n\r\n",
	meStart + "Authorization: Bearer x.y.z\r\n\r\n",
	meStart + "Authorization: {token}\r\n\r\n",
	meStart + "Authorization: Basic dTpw\r\n\r\n",
	meStart + "Authorization:\r\n\r\n",
	meStart + strings.Repeat(meToken, 2) + "\r\n",
	meStart + strings.Repeat(meToken, 3) + "\r\n",
	meStart + "AUTHORIZATION: Bearer {token}\r\n\r\n",
	meStart + "X-Platform-Key: {key}\r\n" + meToken + "\r\n",
	meStart + "X-PLATFORM-key: {key}\r\n" + meToken + "\r\n",
	meStart + "Host: shop.acme.example\r\n" + meToken + "\r\n",
	meStart + "Content-Length: 4\r\n" + meToken + "\r\nbody",
	meStart + "Connection: close\r\n" + meToken + "\r\n",
	meStart + "Strange!: x\r\n" + meToken + "\r\n",
}

// TestFastMeIsTheHandler: the two ways to answer a question about a token give the same bytes.
func TestFastMeIsTheHandler(t *testing.T) {
	s, fill := fastServer(t)
	for _, text := range plainMes {
		request := fill(text)
		fast, slow := steady(s.askGate(request)), steady(s.askLibrary(request))
		if !strings.HasPrefix(fast, "HTTP/1.1 200 ") || fast != slow {
			t.Errorf("%q\nis answered\n%s\nby the fast path, and\n%s\nby the handler", request, fast, slow)
		}
	}
	for _, text := range otherMes {
		request := fill(text)
		got, want := steady(s.askEither(request)), steady(s.askLibrary(request))
		if !strings.HasPrefix(want, "HTTP/1.1 ") || got != want {
			t.Errorf("%q\nis answered\n%s\nwith a fast path, and\n%s\nwithout", request, got, want)
		}
	}
	if got := s.askEither(fill(plainMes[0]), Gateway); !strings.HasPrefix(string(got), "HTTP/1.1 404 ") {
		t.Errorf("on a gateway listener: %s", got)
	}
}

// TestFastMeCounts: each question counts once, by either way, and has one look-up.
func TestFastMeCounts(t *testing.T) {
	s, fill := fastServer(t)
	count := func() (told, lookups uint64) {
		for i := range s.metrics.told.buckets {
			told += s.metrics.told.buckets[i].Load()
		}
		m := s.resolver.Metrics()
		return told, m.Hits + m.NegativeHits + m.Misses
	}
	for _, fast := range []bool{true, false} {
		for text, wantTold := range map[string]uint64{plainMes[0]: 1, meStart + "Authorization: Bearer {theirs}\r\n\r\n": 0,
			strings.Replace(meStart, "shop.acme", "unknown", 1) + meToken + "\r\n": 0} {
			told, lookups := count()
			_ = s.http.ServeConn(s.admit(newRecordedConn(fill(text)), fast))
			toldNow, lookupsNow := count()
			if toldNow-told != wantTold || lookupsNow-lookups != 1 {
				t.Errorf("%q, fast %v: %d told with %d look-ups, want %d with 1", text, fast, toldNow-told, lookupsNow-lookups, wantTold)
			}
		}
	}
}

// FuzzFastMe: a connection with the fast path gives the same bytes as one without.
func FuzzFastMe(f *testing.F) {
	for _, request := range append(plainMes, otherMes...) {
		f.Add(request)
	}
	s, fill := fastServer(f)
	f.Fuzz(func(t *testing.T, text string) {
		request := fill(text)
		if len(request) == 0 || len(request) > s.o.Limits.HeaderBytes {
			return
		}
		if got, want := steady(s.askEither(request)), steady(s.askLibrary(request)); got != want {
			t.Fatalf("%q\nis answered\n%s\nwith a fast path, and\n%s\nwithout", request, got, want)
		}
	})
}
