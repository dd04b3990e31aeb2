package jwks_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/api/gateway/jwks"
	"fingerpost/cmd/testrig"
)

// TestHostileProviders: what is not a key set within the bounds brings no keys, takes none away, and is told in words
// that say nothing of the inside.
func TestHostileProviders(t *testing.T) {
	t.Parallel()
	good := jwk(t, "good")
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"redirects": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "answered 302"},
		"hangs":     {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within 2s"},
		"drips": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(10 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
		}, "no answer within 2s"},
		"1 GiB": {func(w http.ResponseWriter, _ *http.Request) {
			for chunk, i := make([]byte, 1<<20), 0; i < 1024; i++ {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "more than 262144 bytes"},
		"a bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte{0x1f, 0x8b, 8, 0})
		}, "no key set"},
		"huge header": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "no answer in HTTP"},
		"breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "{")
		}, "the connection ended"},
		"65 keys": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, setOf(slices.Repeat([]string{good}, 65)...))
		}, "65 keys"},
		"no keys": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, setOf()) }, "no key that verifies"},
		"unfit keys": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, setOf(`{"kty":"oct","k":"AA"}`))
		}, "1 key unfit"},
		"HTML": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "no key set"},
		"204":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "answered 204"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			p.do(c.answer)
			r := newRig(t, new(ledger), loopback)
			r.Declare([]jwks.Source{{Project: 1, Slug: "one", URL: p.URL + "/secret-path", Needed: true}})
			testrig.Eventually(t, "a problem", func() bool { return len(r.Problems()) == 1 })
			message := r.Problems()[0].Message
			if !strings.Contains(message, c.want) || strings.Contains(message, "secret-path") || strings.Contains(message, "127.0.0.1") {
				t.Errorf("the problem is %q, want %q", message, c.want)
			}
			if r.kids(p.URL+"/secret-path") != "none" || p.asked.Load() != 1 {
				t.Errorf("keys %s after %d requests", r.kids(p.URL+"/secret-path"), p.asked.Load())
			}
			p.say(200, setOf(good))
			r.NoteUnknown(1, p.URL+"/secret-path")
			r.want(p.URL+"/secret-path", "good")
			p.do(c.answer)
			r.clock.advance(time.Hour)
			r.NoteUnknown(1, p.URL+"/secret-path")
			r.wantAsked(p, 3)
			r.stop()
			if r.kids(p.URL+"/secret-path") != "good" {
				t.Error("a bad answer has taken the good set away")
			}
		})
	}
}

// TestInsideAddresses: an address inside is refused at the connection, whatever name leads there, in the words for a name
// that does not exist.
func TestInsideAddresses(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.say(200, setOf(jwk(t, "a")))
	_, port, err := net.SplitHostPort(p.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, new(ledger), nil)
	hosts := []string{"127.0.0.1", "localhost", "[::1]", "169.254.169.254", "missing.invalid"}
	for i, host := range hosts {
		r.Put(jwks.Source{Project: int64(i + 1), Slug: host, URL: "http://" + host + ":" + port, Needed: true})
	}
	testrig.Eventually(t, "a problem of each", func() bool { return len(r.Problems()) == len(hosts) })
	for _, problem := range r.Problems() {
		if problem.Message != "the address cannot be asked" {
			t.Errorf("%s: %s", problem.Slug, problem.Message)
		}
	}
	if p.asked.Load() != 0 {
		t.Error("a refused address was asked")
	}
}

// TestSlowProviders: a project with many addresses that hang leaves places for others.
func TestSlowProviders(t *testing.T) {
	t.Parallel()
	slow, quick := newProvider(t), newProvider(t)
	slow.do(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	quick.say(200, setOf(jwk(t, "a")))
	r := newRig(t, new(ledger), loopback)
	for i := range int64(100) {
		r.Put(jwks.Source{Project: i + 1, Slug: fmt.Sprint(i), URL: fmt.Sprintf("%s/%d", slow.URL, i)})
	}
	r.Put(jwks.Source{Project: 1000, Slug: "quick", URL: quick.URL})
	r.want(quick.URL, "a")
}
