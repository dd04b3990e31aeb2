package api_test

import (
	"io"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
)

// announced are three ways to announce a body that does not come.
var announced = map[string]string{
	"length":  "Content-Length: 1048576\r\n",
	"chunked": "Transfer-Encoding: chunked\r\n",
	"expect":  "Content-Length: 1048576\r\nExpect: 100-continue\r\n",
}

// A request that its head alone decides is answered before any byte of the body has arrived (api/README.md, Errors and
// Keys).
func TestRefusedBeforeBody(t *testing.T) {
	h := start(t, func(o *api.Options) { o.Limits.Read = time.Hour })
	for _, c := range []struct {
		method, path, key string
		status            int
		code              string
	}{
		{"POST", "/api/platform/none", h.all, 404, "NOT_FOUND"},
		{"POST", "/api/platform/none", "", 404, "NOT_FOUND"},
		{"PUT", resolveURL, h.all, 405, "METHOD_NOT_ALLOWED"},
		{"POST", "/api/platform/projects/1", h.all, 405, "METHOD_NOT_ALLOWED"},
		{"POST", "/api/platform/projects", "", 401, "UNAUTHORIZED"},
		{"POST", "/api/platform/projects", h.revoked, 401, "UNAUTHORIZED"},
		{"PUT", "/api/platform/projects/x", h.onlyRead, 400, "VALIDATION_ERROR"},
		{"POST", resolveURL + "?form=x", h.all, 400, "VALIDATION_ERROR"},
		{"POST", "/api/platform/projects", h.onlyRead, 403, "FORBIDDEN"},
		{"POST", "/api/platform/projects", h.acme, 403, "FORBIDDEN"},
		{"PUT", "/api/platform/projects/1", h.onlyRead, 403, "FORBIDDEN"},
		{"PUT", "/api/platform/projects/2", h.acme, 403, "FORBIDDEN"},
		{"POST", "/api/platform/projects/2/domains", h.acme, 403, "FORBIDDEN"},
		{"PUT", "/api/platform/projects/2/auth-settings", h.acme, 403, "FORBIDDEN"},
		{"POST", resolveURL, h.onlyMail, 403, "FORBIDDEN"},
		{"PUT", "/api/platform/projects/999", h.all, 404, "NOT_FOUND"},
		{"PUT", "/api/platform/projects/1/domains/9", h.all, 404, "NOT_FOUND"},
		{"GET", "/api/platform/projects/1", h.onlyRead, 200, ""},
		{"DELETE", "/api/platform/projects/2", h.acme, 403, "FORBIDDEN"},
		{"POST", "/api/mail/none", h.all, 404, "NOT_FOUND"},
		{"POST", "/api/mail/send/raw", h.onlyRead, 403, "FORBIDDEN"},
		{"POST", "/api/mail/projects/smtp-config/test", h.onlyRead, 403, "FORBIDDEN"},
		{"POST", "/api/mail/projects/2/smtp-config", h.acme, 403, "FORBIDDEN"},
		{"POST", "/api/mail/projects/2/templates/preview", h.acme, 403, "FORBIDDEN"},
	} {
		for name, framing := range announced {
			t.Run(c.method+" "+c.path+" "+itoa(c.status)+" "+name, func(t *testing.T) {
				w := h.in(t).dial()
				defer w.Close()
				w.SetDeadline(time.Now().Add(testrig.Patience))
				w.send(c.method + " " + c.path + " HTTP/1.1\r\nHost: x\r\n" + keyLines(c.path, c.key) + framing + "\r\n")
				a := w.answer(c.method)
				a.check(t, c.status, c.code)
				if c.status != 200 || name == "expect" {
					w.closedGently()
				}
			})
		}
		// A client that sends its body anyway gets the same answer, and no reset before it.
		w := h.dial()
		go io.WriteString(w.Conn, c.method+" "+c.path+" HTTP/1.1\r\nHost: x\r\n"+keyLines(c.path, c.key)+announced["length"]+"\r\n"+strings.Repeat("x", 1<<20))
		w.answer(c.method).check(t, c.status, c.code)
		w.Close()
	}
}

// keyLines are the header lines that carry the key to a path.
func keyLines(path, key string) string {
	switch {
	case key == "":
		return ""
	case strings.HasPrefix(path, "/api/mail"):
		return "X-Internal-Service-Token: " + key + "\r\nX-Internal-Service-Name: test\r\n"
	}
	return "X-PLATFORM-KEY: " + key + "\r\n"
}

// The media type and the announced length are checked before the body, too.
func TestBodyRefusedBeforeItComes(t *testing.T) {
	h := start(t, func(o *api.Options) { o.Limits.Read = time.Hour })
	for header, status := range map[string]int{
		"Content-Type: text/plain\r\nContent-Length: 1000": 415,
		"Content-Encoding: gzip\r\nContent-Length: 1000":   415,
		"Content-Length: 1048577":                          413,
	} {
		w := h.dial()
		w.SetDeadline(time.Now().Add(testrig.Patience))
		w.send("POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + keyLines(resolveURL, h.all) + header + "\r\n\r\n")
		if a := w.answer("POST"); a.StatusCode != status {
			t.Errorf("%s: %d, want %d: %s", header, a.StatusCode, status, a.body)
		}
		w.closedGently()
		w.Close()
	}
}

// A refused request whose body has arrived with it does not cost the client its connection.
func TestSmallRefusedBodyKeepsConnection(t *testing.T) {
	h := start(t)
	w := h.dial()
	defer w.Close()
	for range 3 {
		w.send("POST /api/platform/none HTTP/1.1\r\nHost: x\r\n" + keyLines("", h.all) + "Content-Length: 30\r\n\r\n" + `{"domains":["globex.example"]}`)
		w.answer("POST").check(t, 404, "NOT_FOUND")
		w.send(get(""))
		w.answer("GET").check(t, 200, "")
	}
}

// A thousand connections with a good key that announce 1 MiB for a call that the key may not make cost next to nothing.
func TestRefusedBodiesAreNotBuffered(t *testing.T) {
	testrig.Thorough(t)
	const conns = 1000
	h := start(t, func(o *api.Options) { o.Limits.Read = 3 * time.Second })
	wires := make([]*wire, conns)
	for i := range wires {
		wires[i] = h.dial()
		defer wires[i].Close()
	}
	before := heapBytes()
	var most atomic.Uint64
	done := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() {
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				most.Store(max(most.Load(), heapBytes()))
			}
		}
	})
	for i, w := range wires {
		path := []string{"/api/platform/projects/2", "/api/platform/none", resolveURL}[i%3]
		w.send("PUT " + path + " HTTP/1.1\r\nHost: x\r\n" + keyLines(path, h.acme) + announced["length"] + "\r\n" + strings.Repeat("x", 1000))
	}
	wrong := 0
	for i, w := range wires {
		if a := w.answer("PUT"); a.StatusCode != []int{403, 404, 405}[i%3] {
			wrong++
		}
	}
	close(done)
	sampler.Wait()
	grown := int64(most.Load()) - int64(before)
	t.Logf("the heap grew by %d MiB", grown>>20)
	if grown > 200<<20 {
		t.Errorf("the heap grew by %d MiB for bodies that are refused, want under 200", grown>>20)
	}
	if wrong > 0 {
		t.Errorf("%d of %d connections did not get 403, 404 or 405", wrong, conns)
	}
}

// heapBytes returns the size of the process's heap, garbage included.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
