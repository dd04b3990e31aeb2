package tenant_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api/client/tenant"
	"fingerpost/cmd/testrig"
)

const (
	fakeKey = "fpk_testkey_secretsecretsecret"
	epoch   = "0123456789abcdef"
)

// A fake is a server that has the two calls of the client, and can misbehave.
type fake struct {
	t   testing.TB
	url string

	mu       sync.Mutex // guards what follows
	projects map[string]string
	refusals map[string]string // "404 NOT_FOUND" and so on, by host
	asked    []string          // hosts, each with the headers that matter
	streams  map[chan string]bool
	opened   []string // Last-Event-ID of each stream
	position int      // X-Config-Position of answers; 0: none
	// mangle answers a call in place of the fake, and says so. It is called without mu.
	mangle func(w http.ResponseWriter, r *http.Request) bool
}

func newFake(t testing.TB) *fake {
	f := &fake{t: t, projects: map[string]string{"shop.example": "Shop", "a.x.example": "A", "b.x.example": "B", "x.example": "X"},
		refusals: map[string]string{}, streams: map[chan string]bool{}}
	s := httptest.NewServer(f)
	f.url = s.URL
	t.Cleanup(func() {
		f.set(func() { f.mangle = nil })
		f.cut()
		s.CloseClientConnections()
		s.Close()
	})
	return f
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	mangle := f.mangle
	f.mu.Unlock()
	if r.Header.Get("X-Platform-Key") != fakeKey {
		f.t.Errorf("%s with the key %q", r.URL, r.Header.Get("X-Platform-Key"))
	}
	if strings.HasSuffix(r.URL.Path, "/resolve") && r.URL.Query().Get("labels") != "1" {
		f.t.Errorf("%s without labels", r.URL)
	}
	if strings.HasSuffix(r.URL.Path, "/resolve") && r.Method == http.MethodGet {
		note := r.URL.Query().Get("domain")
		for _, name := range []string{"If-None-Match", "X-Min-Position"} {
			short := map[string]string{"If-None-Match": " inm ", "X-Min-Position": " min "}[name]
			if v := r.Header.Get(name); v != "" && v != epoch+".1" { // that of the stream's begin
				note += short + v
			}
		}
		f.set(func() { f.asked = append(f.asked, note) })
	}
	if mangle != nil && mangle(w, r) {
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/events"):
		f.stream(w, r)
	case r.Method == http.MethodPost:
		f.batch(w, r)
	default:
		f.resolve(w, r)
	}
}

// row answers a host as a row of a batch: status, code, tag and result.
func (f *fake) row(host string) (status int, code, etag, result string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if refusal, is := f.refusals[host]; is {
		fmt.Sscanf(refusal, "%d %s", &status, &code)
		return status, code, "", "null"
	}
	name, known := f.projects[host]
	if !known {
		return 404, "NOT_FOUND", "", "null"
	}
	return 200, "", fmt.Sprintf("%q", "tag-"+name), fmt.Sprintf(`{"project":{"id":7,"uuid":"u","name":%q,"slug":"s","status":"ACTIVE","labels":{"plan":"gold"}},
		"authSettings":{"registrationMode":"OPEN"},"serviceSettings":{"mailEnabled":true},"matchedDomain":{"domain":%q}}`, name, host)
}

func (f *fake) resolve(w http.ResponseWriter, r *http.Request) {
	status, code, etag, result := f.row(r.URL.Query().Get("domain"))
	f.mu.Lock()
	if f.position > 0 {
		w.Header().Set("X-Config-Position", fmt.Sprint(epoch, ".", f.position))
	}
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	switch {
	case status != 200:
		refuse(w, status, code)
	case etag == r.Header.Get("If-None-Match"):
		w.WriteHeader(http.StatusNotModified)
	default:
		fmt.Fprintf(w, `{"success":true,"message":"domain resolved","data":%s,"timestamp":"t"}`, result)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"success":false,"error":{"code":%q,"message":"m"},"timestamp":"t"}`, code)
}

func (f *fake) batch(w http.ResponseWriter, r *http.Request) {
	var body struct{ Domains []string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		f.t.Error(err)
	}
	f.set(func() { f.asked = append(f.asked, "batch "+strings.Join(body.Domains, " ")) })
	var rows []string
	for _, host := range body.Domains {
		status, code, etag, result := f.row(host)
		rows = append(rows, fmt.Sprintf(`{"domain":%q,"status":%d,"code":%q,"etag":%q,"result":%s}`, host, status, code, etag, result))
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"success":true,"message":"m","data":[%s],"timestamp":"t"}`, strings.Join(rows, ","))
}

// stream sends what event is given until cut.
func (f *fake) stream(w http.ResponseWriter, r *http.Request) {
	texts := make(chan string, 16)
	f.set(func() {
		f.streams[texts] = true
		f.opened = append(f.opened, r.Header.Get("Last-Event-ID"))
	})
	w.Header().Set("Content-Type", "text/event-stream")
	text := "retry: 2000\n\nid: " + cmp.Or(r.Header.Get("Last-Event-ID"), epoch+".1") + "\n\n"
	for ok := true; ok; {
		fmt.Fprint(w, text)
		w.(http.Flusher).Flush()
		select {
		case text, ok = <-texts:
		case <-r.Context().Done():
			f.set(func() { delete(f.streams, texts) })
			return
		}
	}
}

// send sends text to all streams.
func (f *fake) send(text string) {
	f.set(func() {
		for s := range f.streams {
			s <- text
		}
	})
}

// event sends an event with a generation as its id.
func (f *fake) event(generation int, kind string, domains ...string) {
	data, _ := json.Marshal(map[string]any{"revision": generation, "domains": domains})
	f.send(fmt.Sprintf("id: %s.%d\nevent: %s\ndata: %s\n\n", epoch, generation, kind, data))
}

// cut ends all streams.
func (f *fake) cut() {
	f.set(func() {
		for s := range f.streams {
			close(s)
		}
		clear(f.streams)
	})
}

// away refuses everything with 503 until back.
func (f *fake) away() {
	f.set(func() {
		f.mangle = func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, 503, "UNAVAILABLE"); return true }
	})
	f.cut()
}

// questions returns what was asked since it was last called.
func (f *fake) questions() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := strings.Join(f.asked, ", ")
	f.asked = nil
	return asked
}

// A desk is a cache under test with a clock that moves on demand.
type desk struct {
	*tenant.Cache
	t    testing.TB
	fake *fake
	time *testrig.Clock
	log  *testrig.Log
}

// open opens a cache for a server and waits until the change feed is open, unless o.File has answers.
func open(t testing.TB, f *fake, change func(*tenant.Options)) *desk {
	t.Helper()
	d := openSoon(t, f, change)
	if err := d.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// openSoon is open without the wait.
func openSoon(t testing.TB, f *fake, change func(*tenant.Options)) *desk {
	t.Helper()
	d := &desk{t: t, fake: f, time: &testrig.Clock{}, log: &testrig.Log{}}
	via := &http.Transport{}
	o := tenant.Options{URL: f.url, Key: fakeKey, Transport: testrig.ClockTransport{RoundTripper: via, Clock: d.time},
		Logger: slog.New(slog.NewTextHandler(d.log, nil))}
	if change != nil {
		change(&o)
	}
	cache, err := tenant.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	d.Cache = cache
	t.Cleanup(func() { cache.Close(); via.CloseIdleConnections() })
	return d
}

// want looks a host up and compares the answer: the tenant's name with "stale" behind it, or an error's text.
func (d *desk) want(host, want string) {
	d.t.Helper()
	if got := d.get(host); got != want {
		d.t.Errorf("%s: %q, want %q\n%s", host, got, want, d.log)
	}
}

func (d *desk) get(host string) string {
	t, err := d.Lookup(d.t.Context(), host)
	switch {
	case err != nil:
		return word(err)
	case t.Stale:
		return t.Name + " stale"
	}
	return t.Name
}

func (d *desk) eventually(what string, ok func() bool) {
	d.t.Helper()
	testrig.Eventually(d.t, what, ok)
}

// logs waits for a line of the log.
func (d *desk) logs(text string) {
	d.t.Helper()
	d.eventually("a line with "+text, func() bool { return strings.Contains(d.log.String(), text) })
}

func (d *desk) connected(is bool) {
	d.t.Helper()
	d.eventually(fmt.Sprint("connected: ", is), func() bool { return d.Status().Connected == is })
}

// afterWaits is eventually for what comes after waits of the client. It gives each step more real time than the one
// before: the passing of time also ends requests.
func (d *desk) afterWaits(what string, ok func() bool) {
	d.t.Helper()
	turns := 1
	left := 0
	d.eventually(what, func() bool {
		if left == 0 {
			d.pass()
			turns *= 2
			left = turns
		}
		left--
		return ok()
	})
	d.heard()
}

// heard has an open feed heard: the last jump of the clock may have come after the stream, as if the process had been
// stopped.
func (d *desk) heard() {
	d.t.Helper()
	d.fake.mu.Lock()
	streams := len(d.fake.streams)
	d.fake.mu.Unlock()
	if before := d.Status(); before.Connected && streams > 0 {
		d.fake.send(":\n\n")
		d.eventually("a comment", func() bool { return d.Status().LastContact.After(before.LastContact) })
	}
}

// pass lets waits of the client end: backoffs of up to 30 s.
func (d *desk) pass() { d.time.Advance(31 * time.Second) }
