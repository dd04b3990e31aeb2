package api_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
)

// The answer to a HEAD has no body, whatever is wrong with the request; its Content-Length is that of the error that a
// GET gets (RFC 9110, 9.3.2).
func TestHeadIsAnsweredWithoutBody(t *testing.T) {
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("waits for timeouts")
	}
	h := start(t, func(o *api.Options) { o.Limits.Read, o.Limits.Idle = 200*time.Millisecond, 200*time.Millisecond })
	path := "/api/platform/projects/1"
	for name, c := range map[string]struct {
		request string // M stands for the method
		status  int
	}{
		"no such path":     {"M /none HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		"no key":           {"M " + path + " HTTP/1.1\r\nHost: x\r\n\r\n", 401},
		"space in name":    {"M " + path + " HTTP/1.1\r\nHost: x\r\nX A: b\r\n\r\n", 400},
		"bare LF":          {"M " + path + " HTTP/1.1\nHost: x\n\n", 400},
		"fold":             {"M " + path + " HTTP/1.1\r\nHost: x\r\n y\r\n\r\n", 400},
		"version":          {"M " + path + " HTTP/9.9\r\nHost: x\r\n\r\n", 400},
		"length":           {"M " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400},
		"empty line first": {"\r\nM " + path + " HTTP/1.1\r\nHost: x\r\nX A: b\r\n\r\n", 400},
		"no host":          {"M " + path + " HTTP/1.1\r\n\r\n", 400},
		"control in value": {"M " + path + " HTTP/1.1\r\nHost: x\r\nX-A: \x01\r\n\r\n", 400},
		"relative target":  {"M none HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"mail":             {"M /api/mail/none HTTP/1.1\r\nHost: x\r\nX A: b\r\n\r\n", 400},
		"large header":     {"M " + path + " HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", 20<<10) + "\r\n\r\n", 431},
		"long target":      {"M /" + strings.Repeat("a", 20<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"half a header":    {"M " + path + " HTTP/1.1\r\nHost:", 408},
		"large body":       {"M /none HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", 404},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(method string) (head, body string) {
				w := h.in(t).dial()
				defer w.Close()
				w.send(strings.Replace(c.request, "M ", method+" ", 1))
				raw, err := io.ReadAll(w.Conn)
				if err != nil {
					t.Fatal(err)
				}
				head, body, _ = strings.Cut(string(raw), "\r\n\r\n")
				return head, body
			}
			want, body := answer("GET")
			got, none := answer("HEAD")
			if none != "" {
				t.Errorf("HEAD is answered with the body %q", none)
			}
			length := func(head string) string {
				res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader([]byte(head+"\r\n\r\n"))), &http.Request{Method: "HEAD"})
				if err != nil {
					t.Fatalf("%v: %q", err, head)
				}
				if res.StatusCode != c.status || res.Header.Get("Content-Type") != "application/json; charset=utf-8" {
					t.Errorf("%d %v, want %d", res.StatusCode, res.Header, c.status)
				}
				return res.Header.Get("Content-Length")
			}
			if length(want) != strconv.Itoa(len(body)) || length(got) != length(want) {
				t.Errorf("Content-Length is %q for HEAD and %q for GET, whose body has %d bytes", length(got), length(want), len(body))
			}
		})
	}
}
