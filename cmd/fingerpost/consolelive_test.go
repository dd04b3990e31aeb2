package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"fingerpost/cmd/testrig"
)

// label returns what a screen reader says of a chart.
func (b *tab) label(id string) (text string) {
	b.t.Helper()
	b.eval(fmt.Sprintf("document.querySelector('#chart-%s svg')?.getAttribute('aria-label') ?? ''", id), &text)
	return text
}

// hears waits until a chart says something.
func (b *tab) hears(id, want string) {
	b.t.Helper()
	if err := poll(testrig.Patience, func() error {
		if text := b.label(id); !strings.Contains(text, want) {
			return fmt.Errorf("the chart %s says %q, not %q", id, text, want)
		}
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
}

// The charts of the last hour begin empty and honest, follow what happens while the page is open, and are there without
// JavaScript.
func TestConsoleCharts(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	for range 40 {
		v.get(resolvePath + "shop.acme.example")
	}
	b.open("/console/live")
	b.sees("The last hour", "Time of a resolve")
	b.do(chromedp.Click("#chart-resolves summary", chromedp.ByQuery))
	b.eval("window.before = document.querySelector('#chart-resolves details'); 0", nil)
	b.hears("resolves", " resolves a second in the last ")
	generation := v.generation()
	v.put("acme.hcl", strings.Replace(v.text("acme.hcl"), `domain "old.acme.example" { active = false }`, "", 1))
	v.waitGeneration(generation + 1)
	v.get(resolvePath + "shop.acme.example")
	b.hears("writes", "1 change went live")
	b.sees("domain old.acme.example deleted", "a change in the folder")
	b.hears("took", "Half of the resolves took at most ")
	b.hears("cache", " of the answers came from the cache in the last ")
	var same bool
	b.eval("window.before === document.querySelector('#chart-resolves details') && window.before.open", &same)
	if !same {
		t.Error("the numbers were folded, or replaced, while a person read them")
	}
	b.open("/console/live")
	b.look("live")
	if len(b.said) > 0 {
		t.Errorf("the page's scripts: %q", b.said)
	}

	b.do(emulation.SetScriptExecutionDisabled(true))
	b.open("/console/live")
	b.do(emulation.SetScriptExecutionDisabled(false))
	b.hears("writes", "1 change went live")
	b.do(chromedp.Click("#chart-writes summary", chromedp.ByQuery))
	if table := b.text("#chart-writes table"); !strings.Contains(table, "+50 s") || !strings.Contains(table, "1") {
		t.Errorf("the table behind the chart:\n%s", table)
	}

	shop := v.signedIn(v.shopOnly)
	shop.open("/console/live")
	shop.sees("shown to keys that cover every project")
	var charts int
	if shop.eval("document.querySelectorAll('svg.chart').length", &charts); charts > 0 {
		t.Errorf("a key of one project sees %d charts of all", charts)
	}
}

// Edges are lanes with their state in words, and come and go while the page is open.
func TestConsoleEdges(t *testing.T) {
	testrig.Thorough(t) // an edge is missed after half a minute
	t.Parallel()
	program := findBrowser(t)
	c := idleCluster(t, "fra", "ams")
	files, admin, _ := consoleFiles(1)
	c.put("key-admin.hcl", files["key-admin.hcl"])
	c.begin()
	fra := c.edge("fra", "")
	fra.resolves("shop.acme.example")
	b := newTab(t, program, c.url)
	b.signIn(admin)
	b.open("/console/live")
	b.sees("It has everything.", "not been heard since this authority started")
	lane := func(want string) {
		t.Helper()
		if err := poll(testrig.Patience, func() error {
			var text string
			b.eval("[...document.querySelectorAll('.lanes svg')].map(s => s.getAttribute('aria-label')).join(' | ')", &text)
			if !strings.Contains(text, want) {
				return fmt.Errorf("the lanes say %q, not %q", text, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	lane("fra: never behind in the last ")
	fra.halt()
	b.sees("It was last heard ")
	lane("not ready for ")
	b.look("live-edges")
	fra.start()
	b.sees("It has everything.")

	b = newTab(t, program, fra.url)
	b.signIn(admin)
	b.open("/console/live")
	b.hears("authority", "The authority was last heard ")
	if text := b.text("main"); strings.Contains(text, "mails were sent") {
		t.Errorf("an edge shows mail, and sends none:\n%s", text)
	}
}

// A liveStream is an open stream of the Live page.
type liveStream struct {
	status int
	body   io.ReadCloser
	said   strings.Builder
}

// liveStreams signs in with a key and opens streams of the Live page with the session.
func (r *rig) liveStreams(key string) (open func() *liveStream) { return r.streamsOf("live", key) }

// streamsOf is liveStreams for a page.
func (r *rig) streamsOf(page, key string) (open func() *liveStream) {
	r.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	form := url.Values{"key": {key}, "name": {"Ada"}, "email": {"ada@example.com"}}
	signIn, err := http.NewRequest(http.MethodPost, r.url+"/console/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		r.t.Fatal(err)
	}
	signIn.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	signIn.Header.Set("Sec-Fetch-Site", "same-origin")
	signedIn, err := client.Do(signIn)
	if err != nil {
		r.t.Fatal(err)
	}
	signedIn.Body.Close()
	return func() *liveStream {
		r.t.Helper()
		stream, err := http.NewRequest(http.MethodGet, r.url+"/console/"+page+"/stream", nil)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, cookie := range signedIn.Cookies() {
			stream.AddCookie(cookie)
		}
		res, err := client.Do(stream)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { res.Body.Close() })
		return &liveStream{status: res.StatusCode, body: res.Body}
	}
}

// until reads until the stream has said something, and returns all that it has said.
func (s *liveStream) until(t *testing.T, want string) string {
	t.Helper()
	part := make([]byte, 32<<10)
	for !strings.Contains(s.said.String(), want) {
		n, err := s.body.Read(part)
		if s.said.Write(part[:n]); err != nil && !strings.Contains(s.said.String(), want) { // the last bytes may come with EOF
			t.Fatalf("%v, and %q does not stand in %q", err, want, s.said.String())
		}
	}
	return s.said.String()
}

// A stream of a key that covers one project has no figures of all projects, and a stream ends when its key does not
// cover every project any more.
func TestConsoleStreamsOfKeys(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	files, admin, shopOnly := consoleFiles(1)
	r := newRig(t, files)
	whole := r.liveStreams(admin)()
	whole.until(t, "event: state\n")
	part := r.liveStreams(shopOnly)().until(t, "\n:\n") // nothing is new
	if strings.Contains(part, "event: state\n") || strings.Contains(part, "event: chart") || strings.Contains(part, "resolves a second") {
		t.Errorf("a key of one project is sent\n%s", part)
	}
	r.put("key-admin.hcl", strings.Replace(files["key-admin.hcl"], "allow = ", "projects = [\"acme\"]\n  allow = ", 1))
	whole.until(t, "event: ended\n")
}

// The start page is told what needs a person when that changes, and nothing otherwise; a key of one project is told
// nothing of files.
func TestConsoleNowStream(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	files, admin, shopOnly := consoleFiles(1)
	r := idleRig(t, t.TempDir(), files)
	r.flags = []string{"--mail-sink"}
	r.start()
	all, shop := r.streamsOf("now", admin)(), r.streamsOf("now", shopOnly)()
	all.until(t, "All is well<")
	all.until(t, "Every mail is kept and none is sent")
	all.until(t, "event: nowcharts\n")
	shop.until(t, "All is well with your projects")
	r.put("acme.hcl", strings.Replace(files["acme.hcl"], `"ACTIVE"`, `"ACTIV"`, 1))
	all.until(t, "The files have 1 error")
	before := len(shop.said.String())
	if news := shop.until(t, "\n:\n")[before:]; strings.Contains(news, "acme.hcl") || strings.Contains(news, "event: needs") {
		t.Errorf("a key of one project is told\n%s", news)
	}
	r.put("key-admin.hcl", strings.Replace(files["key-admin.hcl"], "allow = ", "projects = [\"acme\"]\n  allow = ", 1))
	all.until(t, "event: ended\n")
}

// Streams that browsers have left make room for others, also those that have nothing to tell.
func TestConsoleStreamsThatWereLeft(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	files, _, shopOnly := consoleFiles(1)
	open := newRig(t, files).liveStreams(shopOnly)
	var all []*liveStream
	for {
		s := open()
		if s.status != http.StatusOK {
			break
		}
		all = append(all, s)
		s.until(t, "event: figures\n")
	}
	for _, s := range all {
		s.body.Close()
	}
	if err := poll(testrig.Patience, func() error {
		if s := open(); s.status != http.StatusOK {
			return fmt.Errorf("%d streams were left, and the next one is answered %d", len(all), s.status)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
