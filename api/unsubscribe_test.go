package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"fingerpost/api"
	"fingerpost/resolver/signedlink"
)

// link returns the path of a link of the project "post".
func (m *mailCare) link(address, category string) string {
	m.t.Helper()
	link, err := m.links.Make(signedlink.Subscription{ProjectID: postID, Address: address, Category: category})
	if err != nil {
		m.t.Fatal(err)
	}
	return signedlink.RecipientPath + link
}

// open sends a request as a browser or a receiver does, without a key.
func (m *mailCare) open(method, path, body string) *answer {
	m.t.Helper()
	req, err := http.NewRequest(method, "http://"+m.addr+path, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return &answer{Response: res, body: text}
}

// TestUnsubscribe: a click of a receiver leaves one category, a scanner changes nothing, and a person gets pages.
func TestUnsubscribe(t *testing.T) {
	m := startMailCare(t)
	path := m.link("Ada@example.com", "newsletter")
	page := func(method string, status int, says string) {
		t.Helper()
		a := m.open(method, path, "")
		body := string(a.body)
		if a.StatusCode != status || !strings.Contains(body, says) || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") ||
			a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Referrer-Policy") != "no-referrer" ||
			!strings.Contains(a.Header.Get("Content-Security-Policy"), "default-src 'none'") || strings.Contains(body, "example.com") {
			t.Errorf("%s: %d %v %s", method, a.StatusCode, a.Header, body)
		}
	}
	page("GET", 200, `<form method="post">`)
	page("GET", 200, "The post")
	page("HEAD", 200, "")
	for _, method := range []string{"PUT", "DELETE", "OPTIONS", "PATCH"} {
		page(method, 405, "")
	}
	if rows := rowsOf(m.ask("GET", postList, m.writer, "")); len(rows) != 0 {
		t.Errorf("a GET has listed %q", rows)
	}
	for _, body := range []string{"List-Unsubscribe=One-Click", "", "--x\r\nanything\r\n"} {
		a := m.open("POST", path, body)
		if a.StatusCode != http.StatusOK || len(a.body) != 0 || a.Header.Get("Location") != "" {
			t.Errorf("%q: %d %v %s", body, a.StatusCode, a.Header, a.body)
		}
	}
	if rows := rowsOf(m.ask("GET", postList, m.writer, "")); len(rows) != 1 || rows[0] != "Ada@example.com unsubscribe newsletter <nil> <nil>" {
		t.Errorf("%q", rows)
	}
	page("GET", 200, "no more mail")
	trail := m.ask2("/api/platform/audit?limit=100&action=suppression.add", m.reader)
	if n := strings.Count(string(trail.body), `"door":"link","actor":null`); n != 1 {
		t.Errorf("%d entries of the trail: %s", n, trail.body)
	}
	news := m.ask("POST", "/send/template", m.poster, `{"domain":"post.example","toEmail":"ada@example.com","templateCode":"NEWS"}`)
	if news.data()["reason"] != "unsubscribe" {
		t.Errorf("%s", news.body)
	}
	if plain := m.ask("POST", "/send/template", m.poster, strings.Replace(hello, "HELLO", "PLAIN", 1)); plain.data()["sent"] != true {
		t.Errorf("%s", plain.body)
	}
	if log := m.log.String(); strings.Contains(log, path) || strings.Contains(log, "example.com") {
		t.Error("the log has a link or an address")
	}
}

// TestUnsubscribeUnknown: what is no link of this service, or of a project that is gone, is 404 for both methods.
func TestUnsubscribeUnknown(t *testing.T) {
	m := startMailCare(t)
	link := m.link("ada@example.com", "newsletter")
	gone, err := m.links.Make(signedlink.Subscription{ProjectID: 999, Address: "ada@example.com", Category: "newsletter"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := signedlink.NewRecipients(start(t).resolver).Make(signedlink.Subscription{ProjectID: postID, Address: "ada@example.com", Category: "newsletter"})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/u/", "/u/x", link[:len(link)-1], link + "A", link + "/x", strings.ToLower(link), "/u/" + gone, "/u/" + other,
		"/u/%2e%2e"} {
		for _, method := range []string{"GET", "POST"} {
			a := m.open(method, path, "")
			if a.StatusCode != 404 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
				t.Errorf("%s %s: %d %s", method, path, a.StatusCode, a.body)
			}
		}
	}
	// Nothing in a query names an address.
	if a := m.open("POST", link+"?address=eve%40example.com&category=offers", "address=eve@example.com"); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if rows := rowsOf(m.ask("GET", postList, m.writer, "")); len(rows) != 1 || !strings.HasPrefix(rows[0], "ada@example.com unsubscribe newsletter") {
		t.Errorf("%q", rows)
	}
}

// TestUnsubscribeReadOnly: a node that changes nothing says so, and still shows pages.
func TestUnsubscribeReadOnly(t *testing.T) {
	m := startMailCare(t, func(o *api.Options) { o.Config.ReadOnly = true })
	path := m.link("ada@example.com", "newsletter")
	if a := m.open("POST", path, ""); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	if a := m.open("GET", path, ""); a.StatusCode != 200 {
		t.Errorf("%d", a.StatusCode)
	}
	m.server.SetLoading(true)
	defer m.server.SetLoading(false)
	if a := m.open("GET", path, ""); a.StatusCode != 503 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%d", a.StatusCode)
	}
}

// TestUnsubscribeAtAnEdge: an edge passes method and path on to its authority, and nothing of what came with them.
func TestUnsubscribeAtAnEdge(t *testing.T) {
	a := &standIn{answer: "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\nContent-Length: 4\r\n\r\npage"}
	m := &mailCare{post: &post{house: start(t, func(o *api.Options) { o.Cluster.Edge = a })}}
	for _, method := range []string{"GET", "POST", "HEAD"} {
		got := m.open(method, "/u/abc?x=1", map[string]string{"POST": "address=eve@example.com"}[method])
		if body := string(got.body); got.StatusCode != 200 || body != map[string]string{"HEAD": ""}[method] && body != "page" {
			t.Errorf("%s: %d %s", method, got.StatusCode, got.body)
		}
	}
	got := a.requests()
	if len(got) != 3 || !strings.HasPrefix(got[0], "GET /u/abc HTTP/1.1\r\n") || !strings.HasPrefix(got[1], "POST /u/abc HTTP/1.1\r\n") ||
		strings.Contains(strings.Join(got, ""), "eve@") {
		t.Errorf("the authority gets %q", got)
	}
	a.fail("UNAVAILABLE", "away")
	if got := m.open("POST", "/u/abc", ""); got.StatusCode != 503 || got.Header.Get("Retry-After") == "" || !strings.Contains(string(got.body), "<h1>") {
		t.Errorf("without an authority: %d %v %s", got.StatusCode, got.Header, got.body)
	}
	if got := m.open("PUT", "/u/abc", ""); got.StatusCode != 405 || len(a.requests()) != 4 {
		t.Errorf("%d, %d requests", got.StatusCode, len(a.requests()))
	}
}
