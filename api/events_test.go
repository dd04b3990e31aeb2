package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

func TestEventStream(t *testing.T) {
	h := start(t)
	s := h.events(h.onlyRead, "")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "Content-Length": "",
	} {
		if got := s.head.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if s.head.StatusCode != 200 || s.head.Header.Get("X-Request-Id") == "" || s.head.Header.Get("Date") == "" || !s.head.Close {
		t.Errorf("head %+v", s.head)
	}
	h.edit(project(7, "seven", "Seven", catalog.StatusActive, "seven.example"))
	first := s.want("project.changed", `"projectId":7,"slug":"seven","domains":["seven.example"]}`)
	if want := h.resolver.Position().String(); first.id != want || !strings.HasSuffix(first.id, ".2") {
		t.Errorf("id %q, want the position %q", first.id, want)
	}
	h.edit(project(7, "seven", "Seven", catalog.StatusActive, "seven.example", "*.seven.example"))
	s.want("domain.changed", `"domains":["*.seven.example"]`)
	h.apply("seven.hcl", &catalog.Declared{})
	s.want("project.deleted", `"domains":["*.seven.example","seven.example"]`)

	// Resume after one event, after none, after all.
	s.Close()
	again := h.events(h.onlyResolve, first.id)
	again.want("project.changed", "seven") // comes again: it could have been one of several
	again.want("domain.changed", "seven")
	last := again.want("project.deleted", "seven")
	h.edit(project(8, "eight", "Eight", catalog.StatusActive))
	again.want("project.changed", "eight")
	resumed := h.events(h.all, last.id)
	resumed.want("project.deleted", "seven")
	resumed.want("project.changed", "eight")
	// A key of one project gets the events of that project.
	scoped := h.events(h.acmeResolve, first.id)
	acme := project(1, "acme", "Acme Store", catalog.StatusActive, "shop.acme.example")
	h.edit(project(8, "eight", "Eight and a half", catalog.StatusActive))
	h.edit(acme)
	scoped.want("project.changed", `"slug":"acme"`)
}

// A client that has seen no event has an id to resume from: it misses no event while it is away.
func TestEventStreamBeginsWithAnID(t *testing.T) {
	h := start(t)
	h.edit(project(6, "six", "Six", catalog.StatusActive))
	s := h.events(h.all, "")
	line, err := s.body.ReadString('\n')
	var retry int
	if n, _ := fmt.Sscanf(line, "retry: %d\n", &retry); n != 1 || err != nil || retry < 2000 || retry > 5000 {
		t.Errorf("the stream begins with %q, %v", line, err)
	}
	at := h.resolver.Position().String()
	for line != "id: "+at+"\n" {
		if line, err = s.body.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	h.edit(project(7, "seven", "Seven", catalog.StatusActive))
	for _, id := range []string{at, "2"} {
		s := h.events(h.all, id)
		s.want("project.changed", "six")
		s.want("project.changed", "seven")
	}
}

// A client that comes from a node which is ahead gets no reset if this one follows soon. Until that is decided it gets no
// byte, since it would take the stream for open; then what it missed, and the position alone. Meanwhile the keys that the
// stream follows live.
func TestEventStreamAhead(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	h := start(t, func(o *api.Options) { o.Limits.Heartbeat = 20 * time.Millisecond })
	now := h.resolver.Position()
	d := &catalog.Declared{}
	soon := h.newKey(d, "soon", catalog.MayRead, "seven", "acme")
	h.apply("k.hcl", d)
	ahead := func(key string, n uint64) func() *stream {
		return h.dial().eventsLater("1.1", key, catalog.Position{Epoch: now.Epoch, Generation: h.resolver.Position().Generation + n}.String())
	}
	openS, openRevoked, openScoped, openLate := ahead(h.all, 1), ahead(soon, 2), ahead(h.acmeResolve, 1), ahead(h.all, 1000)
	testrig.Eventually(t, "four streams", func() bool { return h.streams() == 4 })
	h.edit(project(1, "acme", "Acme Store", catalog.StatusActive))
	s, scoped := openS(), openScoped()
	for _, s := range []*stream{s, scoped} {
		s.begins("event: project.changed", h.resolver.Position())
	}
	h.apply("k.hcl", &catalog.Declared{}) // later: a stream that still waits gets a reset when keys change
	openRevoked().ends()
	h.edit(project(7, "seven", "Seven", catalog.StatusActive, "seven.example"))
	s.want("project.changed", "seven")
	h.edit(project(1, "acme", "Acme Stores", catalog.StatusActive))
	s.want("project.changed", "acme")
	scoped.want("project.changed", "acme")
	late := openLate() // two seconds after it began, of which each 20 ms could have had a comment
	late.begins("event: reset", h.resolver.Position())
	h.edit(project(8, "eight", "Eight", catalog.StatusActive))
	late.want("project.changed", "eight")
}

// A stream that has missed nothing begins with its position, too.
func TestEventStreamResumesWithAnID(t *testing.T) {
	h := start(t)
	at := h.resolver.Position()
	h.apply("x.hcl", &catalog.Declared{}) // a change without an event
	s := h.events(h.all, at.String())
	s.begins("", h.resolver.Position())
}

func TestEventStreamRefusals(t *testing.T) {
	h := start(t)
	h.ask("GET", "/api/platform/events", "").check(t, 401, "UNAUTHORIZED")
	h.ask("GET", "/api/platform/events", h.expired).check(t, 401, "UNAUTHORIZED")
	h.ask("GET", "/api/platform/events", h.onlyWrite).check(t, 403, "FORBIDDEN")
	h.ask("POST", "/api/platform/events", h.all).check(t, 405, "METHOD_NOT_ALLOWED")
	now := h.resolver.Position().Epoch
	for _, bad := range []string{"x", "-1", "1.5", "0x10", "1 2", "+1", "123456789012345678901",
		now + ".", now + ".x", now + ".01", strings.ToUpper(now) + "x.1", now + ".99999999999999999999", now + ".1.1"} {
		a := h.ask("GET", "/api/platform/events", h.onlyWrite, "Last-Event-ID: "+bad)
		a.check(t, 400, "VALIDATION_ERROR")
		if f := a.fields(); len(f) != 1 || f[0] != "Last-Event-ID" {
			t.Errorf("fields %v", f)
		}
	}
	h.ask("GET", "/api/platform/events", h.all, "Last-Event-ID: 1", "Last-Event-ID: 1").check(t, 400, "VALIDATION_ERROR")
	head := h.ask("HEAD", "/api/platform/events", h.all)
	if head.StatusCode != 200 || head.Header.Get("Content-Type") != "text/event-stream" || head.ContentLength != -1 || len(head.body) > 0 {
		t.Errorf("HEAD: %+v", head.Response)
	}
	if h.streams() != 0 {
		t.Errorf("%d streams are open", h.streams())
	}
	// An unknown id gets a reset, with the current revision.
	for _, id := range []string{"0", "99", "18446744073709551615", "99999999999999999999"} {
		if e := h.events(h.acme, id).want("reset", `{"revision":1}`); e.id != now+".1" {
			t.Errorf("after %s: %+v", id, e)
		}
	}
	h.events(h.acme, catalog.NewEpoch()+".1").want("reset", `{"revision":1}`)
	// A position of this epoch resumes as its number does.
	h.edit(project(8, "eight", "Eight", catalog.StatusActive))
	at := h.resolver.Position()
	h.edit(project(9, "nine", "Nine", catalog.StatusActive))
	resumed := h.events(h.all, at.String())
	resumed.want("project.changed", "eight")
	resumed.want("project.changed", "nine")
}

func TestEventStreamCap(t *testing.T) {
	h := start(t, func(o *api.Options) { o.Limits.Streams, o.Limits.StreamsPerKey = 2, 2 })
	first, second := h.events(h.all, ""), h.events(h.all, "")
	testrig.Eventually(t, "two streams", func() bool { return h.streams() == 2 })
	a := h.ask("GET", "/api/platform/events", h.all)
	a.check(t, 503, "UNAVAILABLE")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	first.Close() // ends the stream at once, not with the next comment
	testrig.Eventually(t, "one stream", func() bool { return h.streams() == 1 })
	h.events(h.all, "")
	h.edit(project(7, "seven", "Seven", catalog.StatusActive))
	second.want("project.changed", "seven")
	testrig.Eventually(t, "the log", func() bool { return strings.Contains(h.log.String(), `"ended":"client"`) })
	if !strings.Contains(h.log.String(), `"path":"/api/platform/events","status":200`) {
		t.Errorf("log:\n%s", h.log)
	}
}

func TestEventStreamHeartbeat(t *testing.T) {
	h := start(t, func(o *api.Options) { o.Limits.Heartbeat = 5 * time.Millisecond })
	s := h.events(h.all, "")
	for range 5 {
		if e, err := s.next(); err != nil || e.kind != comment || e.data != "" {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	h.edit(project(7, "seven", "Seven", catalog.StatusActive))
	s.want("project.changed", "seven")
}

// HTTP/1.0 has no chunks, and a pipelined request behind the one for the stream is never answered.
func TestEventStreamOddClients(t *testing.T) {
	h := start(t)
	old := h.dial().events("1.0", h.all, "")
	if len(old.head.TransferEncoding) != 0 {
		t.Errorf("HTTP/1.0 with %v", old.head.TransferEncoding)
	}
	piped := h.dial()
	piped.send("GET /api/platform/events HTTP/1.1\r\nHost: t\r\nX-PLATFORM-KEY: " + h.all + "\r\n\r\nGET /api/platform/health HTTP/1.1\r\nHost: t\r\n\r\n")
	head, err := http.ReadResponse(piped.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{wire: piped, head: head, body: bufio.NewReader(head.Body)}
	h.edit(project(7, "seven", "Seven", catalog.StatusActive))
	old.want("project.changed", "seven")
	s.want("project.changed", "seven")
	// A client that keeps sending is cut off.
	if _, err := io.Copy(s.Conn, strings.NewReader(strings.Repeat("x", 64<<10))); err == nil {
		testrig.Eventually(t, "the end of the one that talks", func() bool { return h.streams() == 1 })
	}
}

func TestEventStreamOverTLSAndUnix(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	cert, key := writeCert(t, t.TempDir(), "first.example")
	config, err := api.TLSConfig(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, func(o *api.Options) { o.TLS = config })
	secure, err := tls.Dial("tcp", h.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	s := newWire(t, secure).events("1.1", h.all, "")
	path := t.TempDir() + "/s"
	ln, err := api.Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	go h.server.Serve(ln, api.Platform)
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	local := newWire(t, c).events("1.1", h.all, "")
	h.edit(project(7, "seven", "Seven", catalog.StatusActive))
	s.want("project.changed", "seven")
	local.want("project.changed", "seven")
	ctx, cancel := context.WithTimeout(t.Context(), testrig.Patience)
	defer cancel()
	if err := h.server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	s.ends()
	local.ends()
}

// All events of a revision have one id: a client that resumes from it gets all of them again.
func TestEventStreamOfSeveralInOneRevision(t *testing.T) {
	h := start(t)
	s := h.events(h.all, "")
	h.apply("many.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{
		project(7, "seven", "Seven", catalog.StatusActive), project(8, "eight", "Eight", catalog.StatusActive),
	}})
	first := s.want("project.changed", "eight")
	s.Close()
	again := h.events(h.all, first.id)
	again.want("project.changed", "eight")
	if second := again.want("project.changed", "seven"); second.id != first.id {
		t.Errorf("ids %s and %s", first.id, second.id)
	}
}

func TestEventStreamAndKeys(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	h := start(t, func(o *api.Options) { o.Limits.Heartbeat = time.Hour })
	// The same key with different rights, in a file of its own.
	d := &catalog.Declared{}
	key := h.newKey(d, "k", catalog.MayRead, "acme")
	h.apply("k.hcl", d)
	s := h.events(key, "")
	h.edit(project(7, "seven", "Seven", catalog.StatusActive))
	d.Keys[0].Projects = []string{"acme", "seven"}
	h.apply("k.hcl", d)
	s.want("reset", "")
	h.edit(project(7, "seven", "Seven Ltd", catalog.StatusActive))
	last := s.want("project.changed", "seven")
	other := &catalog.Declared{}
	h.newKey(other, "other", catalog.MayRead)
	h.apply("other.hcl", other) // another key
	h.edit(project(7, "seven", "Seven Inc", catalog.StatusActive))
	s.want("project.changed", "seven")
	h.events(key, last.id).want("reset", "") // keys have changed since; the feed does not know which

	d.Keys[0].Allow = catalog.MayWrite
	h.apply("k.hcl", d)
	s.ends()
	testrig.Eventually(t, "the log", func() bool { return strings.Contains(h.log.String(), `"ended":"key"`) })

	for what, change := range map[string]func(){
		"revoked": func() { d.Keys = nil },
		"another text under the same id": func() {
			other := &catalog.Declared{}
			h.newKey(other, "k", catalog.MayRead)
			d.Keys[0].Hash = other.Keys[0].Hash
		},
	} {
		d = &catalog.Declared{}
		key = h.newKey(d, "k", catalog.MayRead, "acme")
		h.apply("k.hcl", d)
		s = h.events(key, "")
		change()
		h.apply("k.hcl", d)
		t.Log(what)
		s.ends()
	}
	for life := 100 * time.Millisecond; ; life *= 2 { // on a busy machine a key can expire before the stream begins
		d = &catalog.Declared{}
		key = h.newKey(d, "k", catalog.MayRead)
		d.Keys[0].ExpiresAt = time.Now().Add(life)
		h.apply("k.hcl", d)
		s = h.events(key, "")
		if s.head.StatusCode != http.StatusUnauthorized {
			break
		}
	}
	s.ends()
}
