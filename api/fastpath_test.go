package api

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"

	"fingerpost/api/gate"
	"fingerpost/api/web"
	"fingerpost/resolver"
)

// A recordedConn is a peer that sends one request and keeps what comes back.
type recordedConn struct {
	scriptedConn
	got     bytes.Buffer
	onWrite func()
	events  []string
}

func newRecordedConn(request []byte) *recordedConn {
	return &recordedConn{scriptedConn: scriptedConn{requests: [][]byte{request}, left: 1}}
}

func (c *recordedConn) Write(p []byte) (int, error) {
	if c.onWrite != nil {
		c.onWrite()
	}
	c.events = append(c.events, "write")
	return c.got.Write(p)
}

func (c *recordedConn) Close() error {
	c.events = append(c.events, "close")
	return nil
}

// A warmConn is a peer that has had its first request, which the fast path leaves to the library.
type warmConn struct {
	net.Conn
	first []byte
}

func (c *warmConn) Read(p []byte) (int, error) {
	if first := c.first; first != nil {
		c.first = nil
		return copy(p, first), nil
	}
	return c.Conn.Read(p)
}

// A oneConn is a listener with one connection.
type oneConn struct {
	net.Listener
	conn net.Conn
}

func (l oneConn) Accept() (net.Conn, error) { return l.conn, nil }

// accept makes a connection of s, as its listener does: one for the platform API, or one for gateways. With fast the gate
// answers plain requests itself.
func (s *Server) accept(peer net.Conn, fast bool, gateway ...Services) *gate.Conn {
	options := gate.ListenerOptions{Attach: s.attach(Platform)}
	if len(gateway) > 0 {
		options.Attach, options.Plain = s.attach(Gateway), gate.PlainCheck
	}
	if fast {
		options.Resolver = s
	}
	c, err := s.gate.Listener(oneConn{conn: peer}, options).Accept()
	if err != nil {
		panic(err)
	}
	return c.(*gate.Conn)
}

// admit is accept for a connection that has had its first request.
func (s *Server) admit(peer net.Conn, fast bool, gateway ...Services) *gate.Conn {
	if !fast {
		return s.accept(peer, false, gateway...)
	}
	c := s.accept(&warmConn{peer, []byte("GET / HTTP/1.1\r\n\r\n")}, true, gateway...)
	if _, err := c.Read(make([]byte, 4096)); err != nil && !errors.Is(err, io.EOF) { // the end: it is stopping
		panic(err)
	}
	return c
}

// askGate returns what the gate answers itself, nothing if it leaves the request to the library.
func (s *Server) askGate(request []byte, gateway ...Services) []byte {
	peer := newRecordedConn(request)
	c := s.admit(peer, true, gateway...)
	_, _ = c.Read(make([]byte, s.o.Limits.HeaderBytes)) // the request, or the end
	c.Close()
	return peer.got.Bytes()
}

// askEither returns what a client gets, by the gate or by the handler.
func (s *Server) askEither(request []byte, gateway ...Services) []byte {
	peer := newRecordedConn(request)
	s.forgiveKeys(peer)
	_ = s.http.ServeConn(s.admit(peer, true, gateway...)) // it ends with the end of the input
	return peer.got.Bytes()
}

// askLibrary returns what the library and the handler answer.
func (s *Server) askLibrary(request []byte, gateway ...Services) []byte {
	peer := newRecordedConn(request)
	s.forgiveKeys(peer)
	_ = s.http.ServeConn(s.admit(peer, false, gateway...)) // what is wrong with the request is in the answer
	return peer.got.Bytes()
}

// forgiveKeys resets the peer's budget of failed keys, so that earlier requests do not change an answer.
func (s *Server) forgiveKeys(peer net.Conn) {
	t := s.keys.throttle
	t.slots[maphash.Comparable(t.seed, gate.Network(gate.PeerAddr(peer.RemoteAddr())))%throttleSlots].Store(0)
}

// changing matches what may differ between two answers to the same request.
var changing = regexp.MustCompile(`(?m)^Date: .*$|^X-Request-Id: [0-9a-f]{16}-[0-9a-f]{12}\r$|"timestamp":"[^"]+"`)

func steady(response []byte) string {
	return string(changing.ReplaceAll(response, []byte("(changes)")))
}

// fastServer is a server with a cached answer, and a function that fills its key and ETag into a request.
func fastServer(tb testing.TB) (s *Server, fill func(request string) []byte) {
	s, ctx := hotServer(tb)
	token, odd := benchToken(1, "u-4711", "ada@example.com"), benchToken(1, "", "b\u00fccher\r\n@example.com ")
	r := strings.NewReplacer("{key}", string(ctx.Request.Header.Peek(headerPlatformKey)), "{tag}", string(ctx.Response.Header.PeekCanonical(web.HeaderETag)),
		"{token}", token, "{odd}", odd, "{theirs}", benchToken(3, "u-4711", "ada@example.com"))
	for _, text := range []string{token, odd} { // the fast path takes tokens that were verified before
		s.askLibrary([]byte(checkOf("auth=required")+"Authorization: Bearer "+text+"\r\n\r\n"), Gateway)
	}
	return s, func(request string) []byte { return []byte(r.Replace(request)) }
}

const plainStart = gate.PlainQuestion + "shop.acme.example HTTP/1.1\r\nHost: localhost:8080\r\nX-PLATFORM-KEY: {key}\r\n"

// plainRequests are those that the fast path is for.
var plainRequests = []string{
	plainStart + "\r\n",
	plainStart + "User-Agent: gateway/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nAccept-Language: de, en;q=0.5\r\n\r\n",
	plainStart + "X-Request-Id: mine.1_2-3\r\n\r\n",
	plainStart + "X-Request-Id: not mine!\r\n\r\n",
	plainStart + "Connection: keep-alive\r\nX-Forwarded-For: 192.0.2.1, 10.0.0.1\r\nX-Forwarded-Proto: https\r\n\r\n",
	plainStart + "If-None-Match: {tag}\r\n\r\n",
	plainStart + "If-None-Match: \"other\", W/{tag}\r\nX-Request-ID: r\r\n\r\n",
	plainStart + "If-None-Match: *\r\n\r\n",
	plainStart + "If-None-Match: \"other\"\r\n\r\n",
	plainStart + "If-None-Match: malformed\r\n\r\n",
	gate.PlainQuestion + "SHOP.acme.example.:443 HTTP/1.1\r\nhost: [::1]\r\nHost: x\r\nx-platform-key: {key}\r\n\r\n",
	gate.PlainQuestion + "SHOP.acme.example.:443 HTTP/1.1\r\nhost: x\r\nuser-agent: undici\r\naccept: */*\r\nx-platform-key:\t {key} \r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n",
}

// otherRequests must be left to the handler, or be answered as it answers.
var otherRequests = []string{
	strings.Replace(plainStart, "GET", "HEAD", 1) + "\r\n",
	strings.Replace(plainStart, "GET", "get", 1) + "\r\n",
	strings.Replace(plainStart, "shop.acme.example", "unknown.example", 1) + "\r\n",
	strings.Replace(plainStart, "shop.acme.example", "shop.acme.example&form=flat", 1) + "\r\n",
	strings.Replace(plainStart, "shop.acme.example", "shop.acme.example&domain=b.example", 1) + "\r\n",
	strings.Replace(plainStart, "shop.acme.example", "shop%2Eacme.example", 1) + "\r\n",
	strings.Replace(plainStart, "shop.acme.example", "shop.acme.example#x", 1) + "\r\n",
	strings.Replace(plainStart, "shop.acme.example", "shop.acme.example ", 1) + "\r\n",
	strings.Replace(plainStart, "shop.acme.example", strings.Repeat("ü", 129), 1) + "\r\n",
	strings.Replace(plainStart, "shop.acme.example", strings.Repeat("ｓｈｏｐ.", 50), 1) + "\r\n",
	strings.Replace(plainStart, "HTTP/1.1", "HTTP/1.0", 1) + "\r\n",
	strings.Replace(plainStart, "HTTP/1.1", "HTTP/1.1 ", 1) + "\r\n",
	strings.Replace(plainStart, "{key}", "fpk_wrong", 1) + "\r\n",
	strings.Replace(plainStart, "X-PLATFORM-KEY: {key}\r\n", "", 1) + "\r\n",
	strings.Replace(plainStart, "Host: localhost:8080\r\n", "", 1) + "\r\n",
	strings.Replace(plainStart, "localhost:8080", "a b", 1) + "\r\n",
	strings.Replace(plainStart, "localhost:8080", "", 1) + "\r\n",
	strings.Replace(plainStart, "localhost:8080", "a\x7f", 1) + "\r\n",
	plainStart + "X-Platform-Key: {key}\r\n\r\n",
	plainStart + "x-PLATFORM-key: {key}\r\n\r\n",
	plainStart + "Host: other\r\n\r\n",
	plainStart + "HOST: other\r\n\r\n",
	plainStart + "Connection: close\r\n\r\n",
	plainStart + "Expect: 100-continue\r\n\r\n",
	plainStart + "Content-Length: 0\r\n\r\n",
	plainStart + "Content-Length: 2\r\n\r\n{}",
	plainStart + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	plainStart + "If-None-Match: \"other\"\r\nIf-None-Match: {tag}\r\n\r\n",
	plainStart + "X-Request-Id: a\r\nX-Request-Id: b\r\n\r\n",
	plainStart + "X-Request-Id:\r\n\r\n",
	plainStart + "User-Agent: \xffbytes\r\n\r\n",
	plainStart + "User-Agent: 1234567\x7f\r\n\r\n",
	plainStart + "User-Agent: 1234567890\x01234567\r\n\r\n",
	plainStart + "Accept : */*\r\n\r\n",
	plainStart + "\r\n" + plainStart + "\r\n",
	"\r\n" + plainStart + "\r\n",
}

// TestFastPathIsTheHandler: the two ways give the same bytes, also after more failed keys than a peer may show.
func TestFastPathIsTheHandler(t *testing.T) {
	s, fill := fastServer(t)
	for range failedKeyBurst + 1 {
		if got := s.askLibrary(fill(strings.Replace(plainRequests[0], "{key}", "fpk_wrong", 1))); !bytes.HasPrefix(got, []byte("HTTP/1.1 401 ")) {
			t.Fatalf("%s, want each failed key to be the first", got)
		}
	}
	for i, text := range plainRequests {
		request := fill(text)
		fast, slow := steady(s.askGate(request)), steady(s.askLibrary(request))
		odd := i == 10 // two hosts
		if odd != (fast == "") || !odd && fast != slow {
			t.Errorf("%q\nis answered\n%s\nby the fast path, and\n%s\nby the handler", request, fast, slow)
		}
	}
	for _, text := range otherRequests {
		request := fill(text)
		if fast := s.askGate(request); len(fast) > 0 {
			t.Errorf("%q\nis answered\n%s\nby the fast path", request, fast)
		}
		got, want := steady(s.askEither(request)), steady(s.askLibrary(request))
		if !strings.HasPrefix(want, "HTTP/1.1 ") || got != want {
			t.Errorf("%q\nis answered\n%s\nwith a fast path, and\n%s\nwithout", request, got, want)
		}
	}
	if n := s.gate.Open(); n != 0 {
		t.Errorf("%d connections still count", n)
	}
}

// TestFastPathCounts: the metrics are the same with the fast path, even if it hands over a request after it has asked.
func TestFastPathCounts(t *testing.T) {
	s, fill := fastServer(t)
	type counts struct {
		ok, notModified, hits, negativeHits, misses, storeReads uint64
	}
	count := func() (n counts) {
		for i := range s.metrics.resolved {
			for j := range s.metrics.resolved[i].ok.buckets {
				n.ok += s.metrics.resolved[i].ok.buckets[j].Load()
				n.notModified += s.metrics.resolved[i].notModified.buckets[j].Load()
			}
		}
		m := s.resolver.Metrics()
		n.hits, n.negativeHits, n.misses, n.storeReads = m.Hits, m.NegativeHits, m.Misses, m.StoreReads
		return n
	}
	ask := func(request string, fast bool) (status string, n counts) {
		before := count()
		peer := newRecordedConn(fill(request))
		_ = s.http.ServeConn(s.admit(peer, fast)) // it ends with the end of the input
		after := count()
		return strings.Split(peer.got.String(), " ")[1], counts{after.ok - before.ok, after.notModified - before.notModified, after.hits - before.hits,
			after.negativeHits - before.negativeHits, after.misses - before.misses, after.storeReads - before.storeReads}
	}
	unknown := func(name string) string { return strings.Replace(plainRequests[0], "shop.acme.example", name, 1) }
	for _, c := range []struct {
		fast, slow, status string
		want               counts
	}{
		{plainRequests[0], plainRequests[0], "200", counts{ok: 1, hits: 1}},
		{plainRequests[5], plainRequests[5], "304", counts{notModified: 1, hits: 1}},
		{unknown("a.example"), unknown("b.example"), "404", counts{misses: 1, storeReads: 1}},
		{strings.Replace(plainRequests[0], "{key}", "fpk_wrong", 1), strings.Replace(plainRequests[0], "{key}", "fpk_wrong", 1), "401", counts{}},
	} {
		for i, request := range []string{c.fast, c.slow} {
			if status, got := ask(request, i == 0); status != c.status || got != c.want {
				t.Errorf("%q: %s, counted as %+v, want %s, %+v", request, status, got, c.status, c.want)
			}
		}
	}
}

// TestFastPathStepsAside: while the service loads or stops, and if resolve is in the access log, the handler answers.
func TestFastPathStepsAside(t *testing.T) {
	s, fill := fastServer(t)
	request := fill(plainRequests[0])
	if len(s.askGate(request)) == 0 {
		t.Fatal("the fast path is not taken")
	}
	s.o.AccessLogResolve = true
	if len(s.askGate(request)) > 0 {
		t.Error("taken with an access log")
	}
	s.o.AccessLogResolve = false
	s.SetLoading(true)
	if len(s.askGate(request)) > 0 {
		t.Error("taken while loading")
	}
	s.SetLoading(false)
	c := s.accept(newRecordedConn(request), true)
	if n, err := c.Read(make([]byte, 4096)); n != len(request) || err != nil {
		t.Errorf("the first request of a connection: %d bytes handed over, %v", n, err)
	}
	s.gate.Stop()
	if len(s.askGate(request)) > 0 {
		t.Error("taken while stopping")
	}
}

// TestWithoutFastPath: a server without it gives the same bytes, by the handler.
func TestWithoutFastPath(t *testing.T) {
	s, fill := fastServer(t)
	for _, text := range plainRequests {
		request := fill(text)
		want := steady(s.askEither(request))
		s.o.NoFastPath = true
		if fast := s.askGate(request); len(fast) > 0 {
			t.Errorf("%q\nis answered\n%s\nby a fast path that is off", request, fast)
		}
		if got := steady(s.askEither(request)); got != want {
			t.Errorf("%q\nis answered\n%s\nwithout the fast path, and\n%s\nwith it", request, got, want)
		}
		s.o.NoFastPath = false
	}
}

// TestFastPathIsNotCutOff: the library considers a connection idle while the fast path answers it, and closes idle ones when it stops.
func TestFastPathIsNotCutOff(t *testing.T) {
	s, fill := fastServer(t)
	peer := newRecordedConn(fill(plainRequests[0]))
	c := s.admit(peer, true)
	peer.onWrite = func() { c.Close() }
	if n, err := c.Read(make([]byte, 4096)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
	if got := strings.Join(peer.events, " "); got != "write close" {
		t.Errorf("%s, want the answer and then the end", got)
	}
	if c.Close(); len(peer.events) != 2 {
		t.Errorf("closed again: %v", peer.events)
	}
	if s.gate.Open() != 0 {
		t.Error("the connection still counts")
	}
}

// TestFastPathHandsOverWhenClosed: answers other than 200 and 304 are sent even if the library has closed the
// connection in the meantime.
func TestFastPathHandsOverWhenClosed(t *testing.T) {
	s, fill := fastServer(t)
	peer := newRecordedConn(fill(strings.Replace(plainRequests[0], "shop.acme.example", "unknown.example", 1)))
	c := s.admit(peer, true)
	keys := s.keys.keys
	s.keys.keys = func() *resolver.KeySet {
		s.keys.keys = keys
		c.Close()
		return keys()
	}
	_ = s.http.ServeConn(c) // it ends with the end of the input
	if got := peer.got.String(); !strings.HasPrefix(got, "HTTP/1.1 404 ") || strings.Join(peer.events, " ") != "write close" {
		t.Errorf("%q, %v", got, peer.events)
	}
	if s.gate.Open() != 0 {
		t.Error("the connection still counts")
	}
}

// TestFastPathSurvivesPanics: after a panic the handler answers, with a 500.
func TestFastPathSurvivesPanics(t *testing.T) {
	s, fill := fastServer(t)
	log := new(bytes.Buffer)
	s.o.Logger = slog.New(slog.NewTextHandler(log, nil))
	s.ids = nil
	if got := s.askGate(fill(plainRequests[0])); len(got) > 0 || !strings.Contains(log.String(), "nil pointer") {
		t.Errorf("%q, logged %s", got, log)
	}
}

// FuzzFastPath: a connection with the fast path gives the same bytes as one without.
func FuzzFastPath(f *testing.F) {
	for _, request := range append(plainRequests, otherRequests...) {
		f.Add(request)
	}
	s, fill := fastServer(f)
	f.Fuzz(func(t *testing.T, text string) {
		request := fill(text)
		if len(request) == 0 || len(request) > s.o.Limits.HeaderBytes {
			return
		}
		got, want := steady(s.askEither(request)), steady(s.askLibrary(request))
		if got != want {
			t.Fatalf("%q\nis answered\n%s\nwith a fast path, and\n%s\nwithout", request, got, want)
		}
	})
}
