package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/api/console"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A linkRig is a server with a console, and requests to it whose peer and headers a test chooses.
type linkRig struct {
	*house
	browser *http.Client
	page    string // that came last
}

func newLinkRig(t *testing.T) *linkRig {
	t.Helper()
	h := start(t, func(o *api.Options) { o.Console = new(console.Options) })
	h.addr = h.listen(api.Platform | api.Mail | api.Console)
	return newBrowser(h)
}

// newBrowser is a browser that looks at the console of a house.
func newBrowser(h *house) *linkRig {
	r := &linkRig{house: h, browser: &http.Client{Transport: new(http.Transport), CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
	h.t.Cleanup(r.browser.CloseIdleConnections)
	return r
}

// send sends a form, or asks if there is none. header is names and values; Host is the host.
func (r *linkRig) send(path string, form url.Values, header ...string) *http.Response {
	r.t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, "http://"+r.addr+path, strings.NewReader(form.Encode()))
	if err != nil {
		r.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res, err := r.browser.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if r.page = string(body); err != nil {
		r.t.Error(err)
	}
	res.Body.Close()
	return res
}

// secret makes a new link, and returns what stands in it.
func (r *linkRig) secret() string {
	r.t.Helper()
	u, err := url.Parse(r.server.ConsoleLink())
	if err != nil || u.Path != "/console/sign-in" || len(u.Query().Get("link")) < 32 { // 6 bits each
		r.t.Fatalf("the link is %v, %v", u, err)
	}
	return u.Query().Get("link")
}

const signIn = "/console/sign-in"

// A link signs in once, with a key of its own that ends with the session and is in no list.
func TestConsoleLink(t *testing.T) {
	t.Parallel()
	r := newLinkRig(t)
	first := r.secret()
	link := r.secret() // the first one has ended
	if res := r.send(signIn, url.Values{"link": {first}}); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("with a link that was replaced: %d", res.StatusCode)
	}
	if res := r.send(signIn+"?link="+link, nil); res.StatusCode != http.StatusOK { // a look does not use it up
		t.Errorf("the page of the link: %d", res.StatusCode)
	}
	if res := r.send(signIn, url.Values{"link": {link}, "name": {"Ada"}}); res.StatusCode != http.StatusBadRequest { // nor a mistake
		t.Errorf("without an address: %d", res.StatusCode)
	}
	in := r.send(signIn, url.Values{"link": {link}, "name": {"Ada"}, "email": {"ada@example.com"}})
	if in.StatusCode != http.StatusSeeOther {
		t.Fatalf("sign-in: %d", in.StatusCode)
	}
	if res := r.send(signIn, url.Values{"link": {link}}); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the second time: %d", res.StatusCode)
	}
	session := []string{"Cookie", "fingerpost=" + in.Cookies()[0].Value}
	for _, path := range []string{"/console/keys", "/console/projects", "/console/mail", "/console/sessions"} {
		if res := r.send(path, nil, session...); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if n := len(r.resolver.Keys().All()); n != len(r.fixture().Keys) {
		t.Errorf("%d keys are listed, the files declare %d", n, len(r.fixture().Keys))
	}
	d := &catalog.Declared{} // a reload of the keys does not end the session
	r.newKey(d, "another", catalog.MayRead)
	r.apply("another.hcl", d)
	if res := r.send("/console/projects", nil, session...); res.StatusCode != http.StatusOK {
		t.Errorf("after a reload: %d", res.StatusCode)
	}
	id := regexp.MustCompile(`"key":"([a-z0-9]+)","key_name":"console-link","person":"Ada <ada@example.com>"`).FindStringSubmatch(r.log.String())
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(r.page)
	if id == nil || token == nil || r.resolver.Keys().Lookup([]byte(id[1])) == nil {
		t.Fatalf("the key %v, the token %v", id, token)
	}
	r.send("/console/sign-out", url.Values{"token": {token[1]}}, session...)
	testrig.Eventually(t, "the key ends with the session", func() bool { return r.resolver.Keys().Lookup([]byte(id[1])) == nil })
	if log := r.log.String(); strings.Contains(log, link) || strings.Contains(log, first) || strings.Contains(log, session[1]) {
		t.Errorf("the log has a secret:\n%s", log)
	}
}

// A link is good for ten minutes, a session for eight hours.
func TestConsoleLinkEnds(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	var now atomic.Int64 // seconds after the start
	began := time.Now()
	h := start(t, func(o *api.Options) {
		o.Console = &console.Options{Now: func() time.Time { return began.Add(time.Duration(now.Load()) * time.Second) }}
	})
	h.addr = h.listen(api.Platform | api.Console)
	r := newBrowser(h)
	good := r.secret()
	now.Store(int64(console.LinkTime/time.Second) - 1)
	in := r.send(signIn, url.Values{"link": {good}})
	if in.StatusCode != http.StatusSeeOther {
		t.Fatalf("a second before the end: %d", in.StatusCode)
	}
	late := r.secret()
	now.Add(int64(console.LinkTime/time.Second) + 1)
	if res := r.send(signIn, url.Values{"link": {late}}); res.StatusCode != http.StatusUnauthorized || !strings.Contains(r.page, "has run out") {
		t.Errorf("a second after the end: %d", res.StatusCode)
	}
	session := []string{"Cookie", "fingerpost=" + in.Cookies()[0].Value}
	for after, want := range map[time.Duration]int{8*time.Hour - 2*time.Second: http.StatusOK, 8 * time.Hour: http.StatusSeeOther} {
		now.Store(int64((console.LinkTime + after) / time.Second))
		if res := r.send("/console/projects", nil, session...); res.StatusCode != want {
			t.Errorf("the session after %v: %d, want %d", after, res.StatusCode, want)
		}
	}
}

// Only this machine uses a link, at an address that only it has, and nobody through a proxy.
func TestConsoleLinkFromElsewhere(t *testing.T) {
	t.Parallel()
	r := newLinkRig(t)
	link := r.secret()
	for _, header := range [][]string{
		{"Host", "config.example"}, {"Host", "10.0.0.1:8080"}, {"Host", "localhost.example"}, {"Host", "127.0.0.1.example:80"},
		{"X-Forwarded-For", "192.0.2.1"}, {"X-Forwarded-For", "127.0.0.1"}, {"Forwarded", "for=192.0.2.1"}, {"X-Real-IP", "192.0.2.1"},
		{"Via", "1.1 proxy"}, {"X-Forwarded-Host", "localhost"}, {"Origin", "http://evil.example"}, {"Sec-Fetch-Site", "cross-site"},
	} {
		if res := r.send(signIn, url.Values{"link": {link}}, header...); res.StatusCode != http.StatusForbidden || len(res.Cookies()) > 0 {
			t.Errorf("with %v: %d", header, res.StatusCode)
		}
	}
	if res := r.send(signIn, url.Values{"link": {link}}, "Host", "localhost:8080"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("the link is used up: %d", res.StatusCode)
	}
}

// Of two browsers one gets in, and guesses are throttled like wrong keys.
func TestConsoleLinkOnce(t *testing.T) {
	t.Parallel()
	r := newLinkRig(t)
	link := r.secret()
	var in atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			r := &linkRig{house: r.house, browser: r.browser}
			if res := r.send(signIn, url.Values{"link": {link}}); res.StatusCode == http.StatusSeeOther {
				in.Add(1)
			}
		})
	}
	all.Wait()
	if in.Load() != 1 {
		t.Errorf("%d browsers got in", in.Load())
	}
	next := r.secret()
	throttled := false
	for range 60 {
		throttled = throttled || r.send(signIn, url.Values{"link": {"guess"}}).StatusCode == http.StatusTooManyRequests
	}
	if !throttled {
		t.Error("60 guesses were not throttled")
	}
	if res := r.send(signIn, url.Values{"link": {next}}); res.StatusCode != http.StatusSeeOther {
		t.Errorf("guesses keep the right link out: %d", res.StatusCode)
	}
}

// Without Options.Guest, as on an edge, there are no links, and a made-up one leads nowhere.
func TestConsoleLinkOnEdge(t *testing.T) {
	t.Parallel()
	r := newConsoleRig(t, newDesk(t, nil))
	if path := r.console.NewLink(); path != "" {
		t.Errorf("there is a link: %s", path)
	}
	req := httptest.NewRequest(http.MethodPost, signIn, strings.NewReader(url.Values{"link": {""}, "key": {""}}.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	if r.console.ServeHTTP(w, req); w.Code != http.StatusUnauthorized {
		t.Errorf("without anything: %d", w.Code)
	}
}
