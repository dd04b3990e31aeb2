package docs_test

import (
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"fingerpost/api/docs"
)

const openAPI = `
openapi: 3.0.3
info: {title: t, description: "What **holds**."}
tags: [{name: things, description: Things}]
paths:
  /things/{id}:
    parameters:
      - {$ref: '#/components/parameters/Id'}
    put:
      operationId: saveThing
      summary: Save a thing
      description: With a ` + "`<tag>`" + `.
      tags: [things]
      security: [{key: [write]}, {key: [propose]}]
      requestBody:
        content:
          application/json:
            schema: {$ref: '#/components/schemas/Thing'}
            example: {name: "a\"<b>", size: 3, parts: [{no: 1}], none: null}
      responses:
        '200': {description: Saved., content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}}
        '409':
          description: '*CONFLICT*: taken.'
components:
  parameters:
    Id: {name: id, in: path, required: true, description: Its id, schema: {type: integer, minimum: 1, maximum: 9}, example: 7}
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
  schemas:
    Thing:
      type: object
      required: [name]
      properties:
        name: {type: string, nullable: true, maxLength: 5}
        size: {enum: [1, 3]}
        parts: {type: array, items: {properties: {no: {type: integer}, of: {$ref: '#/components/schemas/Thing'}}}}
`

func handler(files map[string]string) *docs.Handler {
	api, guides := fstest.MapFS{"openapi.yaml": {Data: []byte(openAPI)}}, fstest.MapFS{}
	for name, text := range files {
		into, path := guides, strings.TrimPrefix(name, "cmd/fingerpost/")
		if rest, is := strings.CutPrefix(name, "api/"); is {
			into, path = api, rest
		}
		into[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return docs.New(docs.Options{Rooms: map[string]fs.FS{"api": api, "cmd/fingerpost": guides}, Logger: slog.Default(),
		Assets:  fstest.MapFS{"assets/console.css": {Data: []byte("a{}")}, "assets/icon.svg": {Data: []byte("<svg/>")}},
		Version: "1.2.3"})
}

func ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(method, target, nil), httptest.NewRecorder()
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	h.ServeHTTP(w, r)
	return w
}

// see asks for a page and looks for texts in it; those with a ! before them must not be there.
func see(t *testing.T, h http.Handler, target string, status int, texts ...string) {
	t.Helper()
	got := ask(h, "GET", target)
	if got.Code != status {
		t.Errorf("%s: %d, want %d", target, got.Code, status)
	}
	for _, text := range texts {
		absent, not := strings.CutPrefix(text, "!")
		if strings.Contains(got.Body.String(), absent) == not {
			t.Errorf("%s: has %q: %v\n%s", target, absent, not, got.Body)
		}
	}
}

func TestMarkdown(t *testing.T) {
	h := handler(map[string]string{
		"cmd/fingerpost/guides/index.md": "# Guides\n\n[one](one.md#auth_settings-and-more) [api](../../../api/README.md) [room](../../../api)\n" +
			"[calls](../../../api/openapi.yaml) [bench](../../../bench/README.md#a) [out](https://example.com/x.md)\n",
		"cmd/fingerpost/guides/one.md": "# One\n\n## auth_settings, and `more`\n\n## Twice\n\n### Twice\n\n[up](#twice-1) ![seen](a.png)\n\n" +
			"| a | b |\n|---|--:|\n| 1 | 2 |\n\n```sh\nls <x>\n```\n\n<script>alert(1)</script>\n\n[bad](javascript:alert)\n",
		"api/README.md": "# API\n\ntext\n",
	})
	see(t, h, "/docs/", 200, `<a href="/docs/one#auth_settings-and-more">one</a>`, `<a href="/docs/api">api</a>`,
		`<a href="/docs/api">room</a>`, `<a href="/docs/openapi">calls</a>`, `!>bench<`, `bench`, `href="https://example.com/x.md"`, "1.2.3")
	see(t, h, "/docs", 200, "<h1 id=\"guides\">Guides</h1>")
	see(t, h, "/docs/one", 200, `<h2 id="auth_settings-and-more">`, `<h2 id="twice">`, `<h3 id="twice-1">`, `href="#twice-1"`, "!a.png",
		`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`, `align="right"`, "!style=", "!<script>", "ls &lt;x&gt;",
		`<pre tabindex="0">`, "!javascript:", "<title>One · fingerpost</title>")
}

func TestSearch(t *testing.T) {
	h := handler(map[string]string{"cmd/fingerpost/guides/index.md": "# Start\n",
		"cmd/fingerpost/guides/mail.md":  "# Send mail\n\n## Its queue\n\nA mail that waits.\n\n| code | what |\n|---|---|\n| `SMTP_BUSY` | the server is busy; see the *log* |\n",
		"cmd/fingerpost/guides/queue.md": "# Queue\n\n## Other\n\nMake a backup <b> of SMTP_BUSY.\n\n- `--depth N` is how deep\n"})
	first := func(query, want string) {
		t.Helper()
		page := ask(h, "GET", "/docs/?q="+url.QueryEscape(query)).Body.String()
		_, hits, _ := strings.Cut(page, `<ul class="hits">`)
		if got := regexp.MustCompile(`<a href="([^"]*)">`).FindStringSubmatch(hits); got == nil || got[1] != want {
			t.Errorf("%q leads to %q, want %q:\n%s", query, got, want, hits)
		}
	}
	first("QUEUE", "/docs/queue")
	first("its queue", "/docs/mail#its-queue")
	first("smtp_busy", "/docs/mail#its-queue")
	first("--depth", "/docs/queue#other")
	first("back up", "/docs/queue#other")
	first("back-up", "/docs/queue#other")
	first("waits mail", "/docs/mail#its-queue")
	first("savething", "/docs/openapi/things#saveThing")
	first("its queue "+strings.Repeat("e ", 100_000), "/docs/mail#its-queue") // the first words are looked for
	see(t, h, "/docs/?q=smtp_busy", 200, "<mark>SMTP_BUSY</mark> the server is busy; see the log")
	see(t, h, "/docs/?q=%3Cb%3Ex", 200, "Nothing has “&lt;b&gt;x”", `value="&lt;b&gt;x"`)
	see(t, h, "/docs/?q=+", 200, "<h1 id=\"start\">Start</h1>")
	see(t, h, "/docs/mail", 200, `<a href="/docs/mail" aria-current="page">Send mail</a>`, `rel="prev">← Start</a>`, `rel="next">Queue →</a>`)
	see(t, h, "/docs/openapi/things", 200, "$ curl -X PUT -H &#34;X-Key: $KEY&#34;", "http://127.0.0.1:8080/things/7")
	see(t, h, "/docs/docs.js", 200, "clipboard")
}

func TestReference(t *testing.T) {
	h := handler(map[string]string{"cmd/fingerpost/guides/index.md": "# Start\n"})
	see(t, h, "/docs/openapi", 200, `href="/docs/openapi/things#saveThing"`, "What <strong>holds</strong>.", "PUT /things/{id}", "Save a thing")
	see(t, h, "/docs/openapi/things", 200, `<h2 id="saveThing"><code>PUT /things/{id}</code></h2>`, "<code>&lt;tag&gt;</code>",
		"Needs <code>X-Key</code> with <code>write</code> or <code>propose</code>.", "integer, from 1 to 9, required", "<code>7</code>",
		"<code>name</code>", "string or null, at most 5 characters", "1 or 3, may be missing", "<code>parts[].no</code>",
		"<code>parts[].of.name</code>", "&#34;name&#34;: &#34;a\\&#34;&lt;b&gt;&#34;,\n", "&#34;none&#34;: null\n",
		"<td>409</td><td><p><em>CONFLICT</em>: taken.</p>")
}

func TestAnswers(t *testing.T) {
	h := handler(map[string]string{"cmd/fingerpost/guides/index.md": "# Start\n", "cmd/fingerpost/guides/one.md": "# One\n"})
	page := ask(h, "GET", "/docs/one")
	if csp := page.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';") ||
		strings.Contains(csp, "unsafe") || !strings.Contains(csp, "script-src 'self';") {
		t.Errorf("policy %q", csp)
	}
	tag := page.Header().Get("ETag")
	if again := ask(h, "GET", "/docs/one", "If-None-Match", tag); tag == "" || again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("with the ETag %q: %d", tag, again.Code)
	}
	if head := ask(h, "HEAD", "/docs/one"); head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: %d, %v", head.Code, head.Header())
	}
	if post := ask(h, "POST", "/docs/one"); post.Code != http.StatusMethodNotAllowed || post.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", post.Code)
	}
	see(t, h, "/docs/docs.css", 200, "a{}", ".document")
	see(t, h, "/docs/icon.svg", 200, "<svg/>")
	for _, target := range []string{"/docs/none", "/docs/one/", "/docs/../docs/one", "/docs/..%2fREADME.md", "/docs/%2e%2e/one", "/docs//etc/passwd",
		"/docs/on%65", "/docs/guides/one.md", "/docs/pages/layout.html", "/docsx", "/docs/none?q=one"} {
		see(t, h, target, 404, `<input type="search"`, "No such page")
	}
}
