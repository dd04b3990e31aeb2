package api_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
)

// get is a request for the health call with further header lines.
func get(headers string) string {
	return "GET " + healthURL + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n"
}

func TestHeaderLimit(t *testing.T) {
	h := start(t)
	line := func(n int) string { return "X-A: " + strings.Repeat("a", n) + "\r\n" }
	fits := 16<<10 - len(get(line(0)))
	for name, c := range map[string]struct {
		message string
		status  int
		code    string
	}{
		"just fits":    {get(line(fits)), 200, ""},
		"one more":     {get(line(fits + 1)), 431, "HEADERS_TOO_LARGE"},
		"far more":     {get(line(1 << 20)), 431, "HEADERS_TOO_LARGE"},
		"many lines":   {get(strings.Repeat("X-A: b\r\n", 5000)), 431, "HEADERS_TOO_LARGE"},
		"long target":  {"GET /" + strings.Repeat("a", 20<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431, "HEADERS_TOO_LARGE"},
		"endless line": {"GET /" + strings.Repeat("a", 4<<20), 431, "HEADERS_TOO_LARGE"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []string{"", get("")} {
				w := h.dial()
				defer w.Close()
				go io.WriteString(w.Conn, before+c.message) // the server may stop reading
				if before != "" {
					w.answer("GET").check(t, 200, "")
				}
				a := w.answer("GET")
				a.check(t, c.status, c.code)
				if c.status != 200 {
					w.closed()
				}
			}
		})
	}
}

func TestBodyLimit(t *testing.T) {
	h := start(t)
	const limit = 1 << 20
	pad := func(n int) string {
		body := `{"domains":["globex.example"],"pad":""}`
		return body[:len(body)-2] + strings.Repeat("p", n-len(body)) + `"}`
	}
	chunks := func(body string) string {
		var b strings.Builder
		for len(body) > 0 {
			n := min(len(body), 10000)
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		return b.String() + "0\r\n\r\n"
	}
	for name, c := range map[string]struct {
		request string // with its length and body
		status  int
		code    string
	}{
		"just fits":         {"POST " + resolveURL + sized(pad(limit)), 200, ""},
		"one more":          {"POST " + resolveURL + sized(pad(limit+1)), 413, "PAYLOAD_TOO_LARGE"},
		"ten times":         {"POST " + resolveURL + sized(pad(10*limit)), 413, "PAYLOAD_TOO_LARGE"},
		"announced only":    {"POST " + resolveURL + " HTTP/1.1\r\nContent-Length: 99999999999\r\n%s\r\n", 413, "PAYLOAD_TOO_LARGE"},
		"with expect":       {"POST " + resolveURL + " HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2000000\r\n%s\r\n", 413, "PAYLOAD_TOO_LARGE"},
		"chunked fits":      {"POST " + resolveURL + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n%s\r\n" + chunks(pad(limit)), 200, ""},
		"chunked, one more": {"POST " + resolveURL + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n%s\r\n" + chunks(pad(limit+1)), 413, "PAYLOAD_TOO_LARGE"},
		"huge chunk":        {"POST " + resolveURL + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n%s\r\nffffffff\r\n", 413, "PAYLOAD_TOO_LARGE"},
		"unknown path":      {"POST /api/platform/none" + sized(pad(limit+1)), 404, "NOT_FOUND"},
		"other method":      {"PUT /api/platform/projects/by-slug/acme" + sized(pad(limit+1)), 405, "METHOD_NOT_ALLOWED"},
	} {
		t.Run(name, func(t *testing.T) {
			w := h.dial()
			defer w.Close()
			headers := "Host: x\r\nX-Request-Id: big\r\nX-PLATFORM-KEY: " + h.all + "\r\n"
			go io.WriteString(w.Conn, strings.Replace(c.request, "%s", headers, 1))
			a := w.answer("POST")
			a.check(t, c.status, c.code)
			if a.Header.Get("X-Request-Id") != "big" {
				t.Errorf("request id %q", a.Header.Get("X-Request-Id"))
			}
			if c.status == 405 && a.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
				t.Errorf("Allow: %q", a.Header.Get("Allow"))
			}
			if c.status != 200 {
				w.closed()
			}
		})
	}
}

// sized is the rest of a request after its path; %s stands where more header lines go.
func sized(body string) string {
	return fmt.Sprintf(" HTTP/1.1\r\nContent-Length: %d\r\n%%s\r\n%s", len(body), body)
}

// The server does not wait for a body without a good key.
func TestBodyWithoutKeyIsNotRead(t *testing.T) {
	h := start(t)
	for _, length := range []string{"Content-Length: 1000000", "Content-Length: 99999999999", "Transfer-Encoding: chunked", "Content-Length: 500\r\nExpect: 100-continue"} {
		for _, key := range []string{"", "X-PLATFORM-KEY: " + h.revoked + "\r\n", "X-PLATFORM-KEY: " + h.all + "\r\nx-platform-key: " + h.all + "\r\n"} {
			w := h.dial()
			w.send("POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + length + "\r\n\r\n")
			a := w.answer("POST")
			a.check(t, 401, "UNAUTHORIZED")
			w.closed()
			w.Close()
		}
	}
	// A body that is sent anyway neither resets the answer nor is taken for a request.
	w := h.dial()
	defer w.Close()
	go io.WriteString(w.Conn, "POST "+resolveURL+" HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n"+strings.Repeat(get(""), 4000000/len(get(""))))
	w.answer("POST").check(t, 401, "UNAUTHORIZED")
	w.closedGently()
	// Nor where the answer is to bad framing.
	bad := h.dial()
	defer bad.Close()
	go io.WriteString(bad.Conn, "GET / HTTP/9.9\r\n\r\n"+strings.Repeat(get(""), 4000000/len(get(""))))
	bad.answer("GET").check(t, 400, "VALIDATION_ERROR")
	bad.closedGently()
}

func TestExpectContinue(t *testing.T) {
	testrig.Slow(t)
	h := start(t, func(o *api.Options) { o.Limits.Write = 100 * time.Millisecond })
	w := h.dial()
	defer w.Close()
	for range 2 {
		w.send("POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\nX-PLATFORM-KEY: " + h.all + "\r\nExpect: 100-continue\r\nContent-Length: 30\r\n\r\n")
		line, err := w.r.ReadString('\n')
		if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q, %v", line, err)
		}
		w.r.ReadString('\n')
		w.send(`{"domains":["globex.example"]}`)
		w.answer("POST").check(t, 200, "")
		// Long enough for the first answer's write deadline to be over.
		w.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		w.r.Peek(1)
		w.SetDeadline(time.Now().Add(testrig.Patience))
	}
}

// A client that is slow in any way is cut off, and others are served in the meantime.
func TestSlowClients(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for timeouts")
	}
	h := start(t, func(o *api.Options) {
		o.Limits = api.Limits{Read: 300 * time.Millisecond, Write: 300 * time.Millisecond, Idle: 300 * time.Millisecond}
	})
	key := "X-PLATFORM-KEY: " + h.all + "\r\n"
	for name, c := range map[string]struct {
		message string
		drip    bool
		status  int // of the answer; 0: none comes
	}{
		"silent":                {"", false, 0},
		"half a request line":   {"GET " + healthURL, false, 408},
		"half a header":         {"GET " + healthURL + " HTTP/1.1\r\nHost:", false, 408},
		"dripped header":        {get("X-A: " + strings.Repeat("a", 10000) + "\r\n"), true, 408},
		"no body":               {"POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + "Content-Length: 10\r\n\r\n", false, 408},
		"half a body":           {"POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + "Content-Length: 10\r\n\r\n{", false, 408},
		"half a chunk":          {"POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + "Transfer-Encoding: chunked\r\n\r\n5\r\n{", false, 408},
		"dripped body":          {"POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + "Content-Length: 9000\r\n\r\n" + strings.Repeat(" ", 9000), true, 408},
		"idle":                  {get(""), false, 200},
		"half a second request": {get("") + "GET /", false, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := h.in(t).dial()
			defer w.Close()
			begun := time.Now()
			if c.drip {
				go func() {
					for i := range len(c.message) {
						if _, err := w.Write([]byte{c.message[i]}); err != nil {
							return
						}
						<-time.After(5 * time.Millisecond)
					}
				}()
			} else {
				w.send(c.message)
			}
			if c.status != 0 {
				if a := w.answer("GET"); a.StatusCode != c.status {
					t.Errorf("got %d, want %d: %s", a.StatusCode, c.status, a.body)
				}
			}
			if name == "half a second request" {
				w.answer("GET").check(t, 408, "REQUEST_TIMEOUT")
			}
			w.closed()
			testrig.AtMost(t, time.Since(begun), 5*time.Second)
		})
	}
	t.Run("others", func(t *testing.T) {
		t.Parallel()
		h.in(t).ask("GET", healthURL, "").check(t, 200, "")
	})
}

// A client that asks and does not read is cut off as well, which makes room for another.
func TestSlowReader(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it takes seconds")
	}
	h := start(t, func(o *api.Options) {
		o.Limits = api.Limits{Read: 300 * time.Millisecond, Write: 300 * time.Millisecond, Idle: time.Minute, Conns: 1}
	})
	w := h.dial()
	defer w.Close()
	w.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	one := "GET " + resolveURL + "?domain=globex.example HTTP/1.1\r\nHost: x\r\nX-PLATFORM-KEY: " + h.all + "\r\n\r\n"
	w.send(one)
	w.answer("GET").check(t, 200, "")
	go func() {
		many := strings.Repeat(one, 1000)
		for {
			if _, err := io.WriteString(w.Conn, many); err != nil {
				return
			}
		}
	}()
	h.ask("GET", healthURL, "").check(t, 200, "")
}

func TestConnectionCaps(t *testing.T) {
	h := start(t, func(o *api.Options) { o.Limits.Conns, o.Limits.ConnsPerPeer = 8, 5 })
	served := func(w *wire) bool {
		io.WriteString(w.Conn, get(""))
		_, err := w.tryAnswer("GET")
		return err == nil
	}
	var open []*wire
	for range 5 {
		w := h.dial()
		defer w.Close()
		open = append(open, w)
		if !served(w) {
			t.Fatal("not served below the cap per address")
		}
	}
	over := h.dial()
	if served(over) {
		t.Error("served over the cap per address")
	}
	over.Close()
	open[0].Close()
	testrig.Eventually(t, "room for another", func() bool { w := h.dial(); defer w.Close(); return served(w) })
}

// At the total cap, with a request on every connection, accepting pauses; nobody is turned away.
func TestTotalCapPauses(t *testing.T) {
	h := start(t, func(o *api.Options) { o.Limits.Conns, o.Limits.Read = 3, time.Hour })
	var open []*wire
	for range 3 {
		w := h.dial()
		defer w.Close()
		w.send("POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + keyLines("", h.all) + announced["expect"] + "\r\n")
		w.answer("POST") // 100: a handler waits for the body
		open = append(open, w)
	}
	waiting := h.dial()
	defer waiting.Close()
	waiting.send(get(""))
	waiting.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := waiting.r.Peek(1); err == nil {
		t.Error("served over the total cap")
	}
	open[1].Close()
	waiting.SetDeadline(time.Now().Add(testrig.Patience))
	newWire(t, waiting.Conn).answer("GET").check(t, 200, "")
}
