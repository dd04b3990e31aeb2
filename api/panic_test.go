package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"fingerpost/api/web"
	"fingerpost/resolver"
)

type safeBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

// A handler's panic is a 500 with the caller's request id; the process and other connections live, and the cause is in
// the log only.
func TestPanicIsA500(t *testing.T) {
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	log := &safeBuffer{}
	s, err := New(Options{Resolver: r, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.router.GET("/api/mail/panic", s.handler(&route{web.Route{Method: "GET", Path: "/api/mail/panic", Run: func(r *web.Request) error {
		r.Ctx.Response.SetBodyString("half an ans")
		r.Ctx.Response.Header.Set("X-Leak", "yes")
		panic("secret cause")
	}}, Mail}))
	s.router.GET("/fault", s.handler(&route{web.Route{Method: "GET", Path: "/fault", Run: func(r *web.Request) error {
		return io.ErrUnexpectedEOF
	}}, Platform}))
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln, Platform|Mail)
	defer s.Shutdown(t.Context())
	for path, mail := range map[string]bool{"/api/mail/panic": true, "/fault": false} {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\nX-Request-Id: bug-1\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		var e struct {
			Error  struct{ Code string }
			Status int
		}
		if err := json.Unmarshal(body, &e); err != nil || resp.StatusCode != 500 || e.Error.Code != "INTERNAL_ERROR" || (e.Status == 500) != mail {
			t.Errorf("%s: %d %s, %v", path, resp.StatusCode, body, err)
		}
		if resp.Header.Get("X-Request-Id") != "bug-1" || resp.Header.Get("X-Leak") != "" || strings.Contains(string(body), "secret") {
			t.Errorf("%s: %v %s", path, resp.Header, body)
		}
	}
	log.Lock()
	defer log.Unlock()
	for _, want := range []string{"secret cause", `"request_id":"bug-1"`, "panic_test.go", "unexpected EOF"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, log)
		}
	}
}
