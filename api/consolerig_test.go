package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"fingerpost/api/console"
	"fingerpost/resolver/catalog"
)

// A consoleRig is the web console in front of a desk. It records the calls of the API that change something.
type consoleRig struct {
	*desk
	console *console.Console
	wire    *http.Transport
	keys    sync.Map // console.Key by text
	calls   []apiCall
	proven  bool                                    // no domain is pending, failing or lost
	alter   func(path string, answer []byte) []byte // changes answers to reads; nil: none
}

// An apiCall is a call other than a read, with its answer.
type apiCall struct {
	method, path string
	header       http.Header
	body         map[string]any
	status       int
	answer       map[string]any
}

func newConsoleRig(t *testing.T, d *desk) *consoleRig {
	t.Helper()
	return newDeliveringRig(t, d, nil, false)
}

// newDeliveringRig is newConsoleRig on a node that delivers events, or does not, or is an edge.
func newDeliveringRig(t *testing.T, d *desk, hooks console.Webhooks, edge bool) *consoleRig {
	t.Helper()
	r := &consoleRig{desk: d, wire: new(http.Transport)}
	t.Cleanup(r.wire.CloseIdleConnections)
	var err error
	if r.console, err = console.New(console.Options{API: r, Keys: r, Git: true, Logger: slog.New(slog.DiscardHandler),
		Node: console.Node{Unproven: func(string) bool { return !r.proven }, Webhooks: hooks, Edge: edge}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.console.Close)
	return r
}

// RoundTrip implements http.RoundTripper: it passes a call of the console on to the desk.
func (r *consoleRig) RoundTrip(req *http.Request) (*http.Response, error) {
	call := apiCall{method: req.Method, path: req.URL.Path, header: req.Header}
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err == nil {
			err = json.Unmarshal(text, &call.body)
		}
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(text))
	}
	req.URL.Host = r.addr
	res, err := r.wire.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if req.Method != http.MethodGet {
		call.status = res.StatusCode
		_ = json.Unmarshal(text, &call.answer)
		r.calls = append(r.calls, call)
		res.Header.Set("X-Commit", "5657785bc0f1a2a54b1b1f2a1a9d0f9f0f4b7d11") // as with --git-ack commit
	} else if r.alter != nil {
		text = r.alter(req.URL.Path, text)
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
	return res, nil
}

// Check implements console.Keys.
func (r *consoleRig) Check(text string) (console.Key, bool) {
	k, known := r.keys.Load(text)
	if !known {
		return console.Key{}, false
	}
	return k.(console.Key), true
}

// Fail implements console.Keys.
func (r *consoleRig) Fail(netip.Addr) time.Duration { return 0 }

// A guest is a session of the console, used as a browser without scripts does.
type guest struct {
	*consoleRig
	t      testing.TB
	cookie string
	path   string // of the page
	status int
	page   string
}

// signIn begins a session with the key of a name that the desk has.
func (r *consoleRig) signIn(t testing.TB, text string) *guest {
	t.Helper()
	for _, k := range r.resolver.Keys().All() {
		if strings.HasPrefix(text, catalog.KeyPrefix+k.ID+"_") {
			r.keys.Store(text, console.Key{ID: k.ID, Name: k.Name, Allow: k.Allow, Everything: k.EveryProject()})
		}
	}
	g := &guest{consoleRig: r, t: t}
	g.send("/console/sign-in", url.Values{"key": {text}})
	if g.status != http.StatusOK || g.cookie == "" {
		t.Fatalf("sign in: %d %s", g.status, g.page)
	}
	return g
}

// send opens a page, or posts a form, and follows redirects.
func (g *guest) send(path string, form url.Values) {
	g.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	for range 5 {
		req := httptest.NewRequest(method, path, body)
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		req.Header.Set("Cookie", g.cookie)
		w := httptest.NewRecorder()
		g.console.ServeHTTP(w, req)
		for _, c := range w.Result().Cookies() {
			if c.Name == "fingerpost" {
				g.cookie = c.Name + "=" + c.Value
			}
		}
		g.path, g.status, g.page = path, w.Code, w.Body.String()
		if w.Code != http.StatusSeeOther {
			return
		}
		method, body, form, path = http.MethodGet, nil, nil, w.Header().Get("Location")
	}
	g.t.Fatalf("%s leads round in circles", path)
}

// A control is a field of a form that a person can change.
type control struct {
	name, kind, value string
	options           []string // of a select, or of check boxes with one name
}

// controls returns what a browser would send of the first form with the action, and the controls that a person sees.
func (g *guest) controls(action string) (sent url.Values, seen []control) {
	g.t.Helper()
	doc, err := html.Parse(strings.NewReader(g.page))
	if err != nil {
		g.t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Data != "form" || attr(n, "action") != action || attr(n, "method") != "post" {
			continue
		}
		sent = url.Values{}
		for c := range n.Descendants() {
			if name := attr(c, "name"); name != "" && !has(c, "disabled") {
				seen = addControl(sent, seen, c, name)
			}
		}
		return sent, seen
	}
	return nil, nil
}

func addControl(sent url.Values, seen []control, c *html.Node, name string) []control {
	x := control{name: name, kind: c.Data, value: attr(c, "value")}
	switch {
	case c.Data == "input" && attr(c, "type") == "checkbox":
		x.kind = "check"
		if x.value == "" {
			x.value = "on"
		}
		if has(c, "checked") {
			sent.Add(name, x.value)
		}
		if i := slices.IndexFunc(seen, func(s control) bool { return s.name == name }); i >= 0 {
			seen[i].options = append(seen[i].options, x.value)
			return seen
		}
		x.options = []string{x.value}
	case c.Data == "input":
		if attr(c, "type") == "hidden" {
			sent.Set(name, x.value)
			return seen
		}
		x.value = strings.NewReplacer("\r", "", "\n", "").Replace(x.value)
		sent.Set(name, x.value)
	case c.Data == "textarea":
		x.value = strings.ReplaceAll(content(c), "\n", "\r\n") // the parser has made every line end a \n
		sent.Set(name, x.value)
	case c.Data == "select":
		for o := range c.Descendants() {
			if o.Data != "option" {
				continue
			}
			value := content(o)
			if has(o, "value") {
				value = attr(o, "value")
			}
			if has(o, "selected") || len(x.options) == 0 {
				x.value = value
			}
			x.options = append(x.options, value)
		}
		sent.Set(name, x.value)
	default: // a button
		return seen
	}
	return append(seen, x)
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func content(n *html.Node) string {
	var all strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			all.WriteString(c.Data)
		}
	}
	return all.String()
}

// nothingChanged submits the form of the page as it is.
func (g *guest) nothingChanged(what string) {
	g.t.Helper()
	before := len(g.calls)
	sent, _ := g.controls("/console/edit")
	if sent == nil {
		g.t.Errorf("%s: no form, but %d %s", what, g.status, visibleText(g.page))
		return
	}
	g.send("/console/edit", sent)
	for _, c := range g.calls[before:] {
		g.t.Errorf("%s: submitted untouched, it sends %s %s %v: %d", what, c.method, c.path, c.body, c.status)
	}
	if g.status != http.StatusOK || !strings.Contains(g.page, "Nothing was changed.") {
		g.t.Errorf("%s: submitted untouched: %d %s", what, g.status, visibleText(g.page))
	}
}

// changed submits the form with other values of one field, and returns the call that it makes.
func (g *guest) changed(what string, sent url.Values, name string, values ...string) *apiCall {
	g.t.Helper()
	before := len(g.calls)
	form := maps.Clone(sent)
	form[name] = values
	g.send("/console/edit", form)
	if made := g.calls[before:]; len(made) == 1 {
		return &made[0]
	}
	g.t.Errorf("%s: %s = %q makes %d calls: %d %s", what, name, values, len(g.calls)-before, g.status, visibleText(g.page))
	return nil
}

// visibleText is what people read in the main part of a page.
func visibleText(page string) string {
	_, main, _ := strings.Cut(page, "<main")
	doc, err := html.Parse(strings.NewReader("<main" + main))
	if err != nil {
		return page
	}
	text := strings.Join(strings.Fields(content(doc)), " ")
	return text[:min(len(text), 600)]
}

// keyFile declares a key and returns its text.
func keyFile(name, rights string) (text, file string) {
	text, id := catalog.NewKeyText()
	return text, fmt.Sprintf("key %q {\n  id = %q\n  hash = %q\n  %s\n}\n", name, id, catalog.HashKeyText(text), rights)
}
