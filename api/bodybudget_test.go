package api_test

import (
	"testing"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
)

// Bodies in memory are bounded per key and in total. A request beyond the bounds is answered 503 at once, and finished
// requests free their share.
func TestBodyBudget(t *testing.T) {
	const mib = 1 << 20
	h := start(t, func(o *api.Options) { o.Limits.Bodies, o.Limits.BodiesPerKey = 3*mib, 2*mib })
	const body = `{"domains":["globex.example"]}`
	// begin sends a head that announces 1 MiB, and waits until the server asks for the body.
	begin := func(key string) *wire {
		t.Helper()
		w := h.dial()
		w.send("POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + keyLines("", key) + announced["expect"] + "\r\n")
		if line, err := w.r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q, %v", line, err)
		}
		return w
	}
	refused := func(key, framing, body string) {
		t.Helper()
		w := h.dial()
		defer w.Close()
		w.send("POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + keyLines("", key) + framing + "\r\n" + body)
		a := w.answer("POST")
		a.check(t, 503, "UNAVAILABLE")
		if a.Header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
	}
	works := func(key string) bool { return h.askBody("POST", resolveURL, key, body).StatusCode == 200 }

	first, second := begin(h.all), begin(h.all)
	refused(h.all, announced["expect"], "")
	refused(h.all, announced["length"], "")
	refused(h.all, announced["chunked"], "1e\r\n"+body+"\r\n0\r\n\r\n")
	if !works(h.onlyResolve) {
		t.Error("one key's bodies keep another key out")
	}
	h.ask("GET", resolveURL+"?domain=globex.example", h.all).check(t, 200, "")

	third := begin(h.onlyRead)
	refused(h.onlyResolve, announced["length"], "")
	first.Close()
	testrig.Eventually(t, "the budget of a connection that has gone", func() bool { return works(h.all) && works(h.onlyResolve) })
	second.Close()
	third.Close()
	testrig.Eventually(t, "all of the budget", func() bool {
		w := h.dial()
		defer w.Close()
		w.send("POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + keyLines("", h.all) + announced["expect"] + "\r\n")
		line, err := w.r.ReadString('\n')
		return err == nil && line == "HTTP/1.1 100 Continue\r\n"
	})
}
