package api_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
)

// A connection on which no part of a request has arrived is closed without an answer: a client that connects ahead
// would take a 408 for the answer to its next request.
func TestQuietConnectionsAreClosedWithoutAWord(t *testing.T) {
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("waits for timeouts")
	}
	cert, key := writeCert(t, t.TempDir(), "first.example")
	config, err := api.TLSConfig(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	limits := func(o *api.Options) {
		o.Limits = api.Limits{Read: 200 * time.Millisecond, Idle: 200 * time.Millisecond}
	}
	plain, secure := start(t, limits), start(t, limits, func(o *api.Options) { o.TLS = config })
	overTLS := func() *wire {
		c, err := tls.Dial("tcp", secure.addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		return newWire(t, c)
	}
	for name, dial := range map[string]func() *wire{"TCP": plain.dial, "no TLS hello": secure.dial, "TLS": overTLS} {
		silent := dial()
		if rest, err := io.ReadAll(silent.r); len(rest) > 0 || err != nil {
			t.Errorf("%s, silent: %q, %v", name, rest, err)
		}
		silent.Close()
		if name == "no TLS hello" {
			continue
		}
		idle := dial()
		for range 2 {
			idle.send(get(""))
			idle.answer("GET").check(t, 200, "")
		}
		if rest, err := io.ReadAll(idle.r); len(rest) > 0 || err != nil {
			t.Errorf("%s, idle: %q, %v", name, rest, err)
		}
		idle.Close()
		half := dial()
		half.send(get("")[:10])
		half.answer("GET").check(t, 408, "REQUEST_TIMEOUT")
		half.Close()
	}
}

// from dials from another loopback address.
func (h *house) from(ip string) *wire {
	h.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	c, err := d.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	return newWire(h.t, c)
}

// Nine addresses with as many connections each as an address may have do not keep others out: connections that have
// sent nothing make room first, then those that are idle or have sent half a request, and those of peers with a good
// key last.
func TestQuietConnectionsMakeRoom(t *testing.T) {
	for name, begin := range map[string]func(*wire){
		"silent": func(*wire) {},
		"idle":   func(w *wire) { w.send(get("")); w.answer("GET") },
		"half":   func(w *wire) { w.send("GET / HT") },
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, func(o *api.Options) {
				o.Limits = api.Limits{Read: time.Hour, Idle: time.Hour, Conns: 64, ConnsPerPeer: 8}
			}).in(t)
			good := h.from("127.0.1.1")
			defer good.Close()
			good.send("GET /api/platform/projects/1 HTTP/1.1\r\nHost: x\r\n" + keyLines("", h.all) + "\r\n")
			good.answer("GET").check(t, 200, "")
			for i := range 9 * 8 {
				w := h.from("127.0.2." + itoa(i/8+1))
				defer w.Close()
				begin(w)
			}
			for range 20 {
				w := h.from("127.0.3.1")
				w.SetDeadline(time.Now().Add(testrig.Patience))
				w.send(get(""))
				w.answer("GET").check(t, 200, "")
				w.Close()
			}
			good.send("GET /api/platform/projects/1 HTTP/1.1\r\nHost: x\r\n" + keyLines("", h.all) + "\r\n")
			good.answer("GET").check(t, 200, "")
		})
	}
}

// One key cannot take all event streams.
func TestStreamsPerKey(t *testing.T) {
	h := start(t, func(o *api.Options) { o.Limits.Streams = 8 })
	open := func(key string) *wire {
		w := h.dial()
		w.send("GET /api/platform/events HTTP/1.1\r\nHost: t\r\n" + keyLines("", key) + "\r\n")
		return w
	}
	first, second := h.events(h.all, ""), h.events(h.all, "")
	testrig.Eventually(t, "two streams", func() bool { return h.streams() == 2 })
	third := open(h.all)
	defer third.Close()
	a := third.answer("GET")
	a.check(t, 503, "UNAVAILABLE")
	if a.Header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	h.events(h.onlyResolve, "")
	testrig.Eventually(t, "another key's stream", func() bool { return h.streams() == 3 })
	first.Close()
	testrig.Eventually(t, "the end of a stream", func() bool { return h.streams() == 2 })
	h.events(h.all, "")
	second.Close()
}
