package tenant_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api/client/tenant"
)

// TestAway: without the feed answers age; without the server the last ones are given as stale.
func TestAway(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, func(o *tenant.Options) { o.MaxStale = time.Hour })
	d.want("shop.example", "Shop")
	d.want("nobody.example", "unknown")
	f.away()
	d.connected(false)
	d.want("shop.example", "Shop")
	d.want("nobody.example", "unknown")
	f.questions()

	d.time.Advance(6 * time.Second)
	d.want("shop.example", "Shop stale")
	d.eventually("a question", func() bool { return d.Status().LastError != nil && f.questions() != "" })
	for range 100 {
		d.want("shop.example", "Shop stale")
	}
	d.want("nobody.example", "unavailable")
	d.want("new.example", "unavailable")
	if asked := strings.Count(f.questions(), "example"); asked > 3 { // waits are random from 0 s
		t.Errorf("%d questions", asked)
	}
	d.time.Advance(50 * time.Minute)
	d.want("shop.example", "Shop stale")
	d.time.Advance(20 * time.Minute)
	d.want("shop.example", "unavailable")

	f.set(func() { f.mangle = nil })
	d.afterWaits("the feed", func() bool { return d.Status().Connected })
	d.want("shop.example", "Shop") // the feed has no event for it
	d.want("nobody.example", "unknown")
	d.want("new.example", "unknown")
	if err := d.Status().LastError; err != nil {
		t.Error(err)
	}
}

// TestFeedLost: with the server there and the feed lost, an old answer is given at once and asked for behind it.
func TestFeedLost(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	d.want("shop.example", "Shop")
	f.set(func() {
		f.projects["shop.example"] = "New"
		f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/events") {
				refuse(w, 503, "UNAVAILABLE")
				return true
			}
			return false
		}
	})
	f.cut()
	d.connected(false)
	d.want("shop.example", "Shop")
	d.time.Advance(6 * time.Second)
	d.want("shop.example", "Shop stale")
	d.eventually("the new answer", func() bool { return d.get("shop.example") == "New" })
}

// TestHour: for an hour without the server, under load, each known name has an answer.
func TestHour(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	for i := range 50 {
		f.set(func() { f.projects[fmt.Sprint("p", i, ".example")] = "P" })
		d.want(fmt.Sprint("p", i, ".example"), "P")
	}
	f.away()
	d.connected(false)
	f.questions()
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for i := range 50 * 60 {
				if got := d.get(fmt.Sprint("p", i%50, ".example")); got != "P" && got != "P stale" {
					t.Errorf("lookup %d: %s", i, got)
					return
				}
				if i%50 == 0 {
					d.time.Advance(15 * time.Second) // by four goroutines
				}
			}
		})
	}
	load.Wait()
	asked := strings.Count(f.questions(), "example")
	t.Logf("%d lookups, %d questions", 4*50*60, asked)
	if asked > 2000 {
		t.Errorf("%d questions in an hour without an answer", asked)
	}
}

// TestProbe: while the server is away one question at a time asks whether it is back.
func TestProbe(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	f.set(func() {
		f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Retry-After", "20")
			refuse(w, 429, "RATE_LIMITED")
			return true
		}
	})
	d.want("n1.example", "unavailable")
	d.time.Advance(19 * time.Second)
	d.want("n2.example", "unavailable")
	if asked := f.questions(); asked != "n1.example" {
		t.Errorf("asked %s", asked)
	}
	hold := make(chan struct{})
	f.set(func() {
		f.mangle = func(http.ResponseWriter, *http.Request) bool { <-hold; return false }
	})
	d.time.Advance(2 * time.Second)
	var probe sync.WaitGroup
	probe.Go(func() { d.want("shop.example", "Shop") })
	d.eventually("a probe", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.asked) == 1 })
	d.want("n3.example", "unavailable")
	close(hold)
	probe.Wait()
	d.want("n3.example", "unknown")
	if asked := f.questions(); asked != "shop.example, n3.example" {
		t.Errorf("asked %s", asked)
	}
}

// TestUnauthorized: 401 says nothing about a name.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	d.want("shop.example", "Shop")
	f.set(func() {
		f.mangle = func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, 401, "UNAUTHORIZED"); return true }
	})
	f.cut()
	d.connected(false)
	d.pass()
	d.want("shop.example", "Shop stale")
	d.want("new.example", "unauthorized")
	d.want("new.example", "unauthorized")
	d.eventually("the log", func() bool { return strings.Contains(d.log.String(), "refuses the key") })
	if err := d.Status().LastError; !errors.Is(err, tenant.ErrUnauthorized) {
		t.Error(err)
	}
	if log := d.log.String(); strings.Contains(log, fakeKey) {
		t.Error(log)
	}
	f.set(func() { f.mangle = nil })
	d.afterWaits("the feed", func() bool { return d.Status().Connected })
	d.want("shop.example", "Shop")
	d.want("new.example", "unknown")
}

// TestStrangeAnswers: what is not an answer of this API is as if the server were away, with a reason.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	text := func(status int, contentType, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	n := 0
	for cause, answer := range map[string]func(http.ResponseWriter){
		`200 with the content type "text/html"`: text(200, "text/html", "<p>shop.example"),
		`404 with the content type "text/html"`: text(404, "text/html", "<p>not found"),
		"answers 403":                           text(403, "application/json", `{"success":false,"error":{"code":"WAF"}}`),
		"answers 404":                           text(404, "application/json", `{"success":false}`),
		"answers 304":                           text(304, "", ""),
		"body that is not JSON":                 text(200, "application/json", `{"success":true,"data":{"project":`),
		"not of this API":                       text(200, "application/json", `{"hello":1}`),
		"no project":                            text(200, "application/json", `{"success":true,"data":{}}`),
		"read an answer":                        text(200, "application/json", `{"success":true,"data":{"project":{"id":"x"}}}`),
		"unexpected EOF": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			text(200, "application/json", `{"success":true`)(w)
		},
		"redirects are refused": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/"+fakeKey)
			w.WriteHeader(302)
		},
		"EOF": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		f.set(func() { f.mangle = func(w http.ResponseWriter, _ *http.Request) bool { answer(w); return true } })
		n++
		_, err := d.Lookup(t.Context(), fmt.Sprint("n", n, ".example"))
		if !errors.Is(err, tenant.ErrUnavailable) || !strings.Contains(err.Error(), cause) || strings.Contains(err.Error(), fakeKey) {
			t.Errorf("%v, want %s", err, cause)
		}
		f.set(func() { f.mangle = nil })
		d.time.Advance(time.Second) // the first wait is shorter
		d.want("shop.example", "Shop")
		f.event(100+n, "domain.changed", "shop.example")
		d.eventually("the event", func() bool { return d.Status().Entries == 0 })
		d.time.Advance(-time.Second)
	}
}
