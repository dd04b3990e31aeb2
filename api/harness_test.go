package api_test

import (
	"bufio"
	"context"
	"encoding/json"
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
	"fingerpost/mailer"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A house is a running server over a resolver whose store is in memory.
type house struct {
	t        testing.TB
	resolver *resolver.Resolver
	server   *api.Server
	addr     string
	log      *testrig.Log
	served   chan error

	// Keys by what they may do.
	all, onlyResolve, onlyRead, onlyWrite, onlyMail, acme, acmeResolve, expired, revoked string
}

// start serves the platform and mail APIs on a free port.
func start(t testing.TB, change ...func(*api.Options)) *house {
	t.Helper()
	h := &house{t: t, log: &testrig.Log{}, served: make(chan error, 1)}
	logger := slog.New(slog.NewJSONHandler(h.log, nil))
	var err error
	if h.resolver, err = resolver.Open(resolver.Options{
		Logger: logger, CacheBytes: 16 << 20,
		OpenSecret: func(s catalog.Secret, _ string) (string, error) { return s.Ref, nil },
	}); err != nil {
		t.Fatal(err)
	}
	h.apply("fixture.hcl", h.fixture())
	o := api.Options{Resolver: h.resolver, Logger: logger}
	for _, c := range change {
		c(&o)
	}
	if h.server, err = api.New(o); err != nil {
		t.Fatal(err)
	}
	h.addr = h.listen(api.Platform | api.Mail)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		hangUp(h.server)
		h.server.Shutdown(ctx)
		if m, ok := o.Mail.(*mailer.Mailer); ok {
			_ = m.Drain(ctx)
		}
		h.resolver.Close()
	})
	return h
}

// hangUp closes the clients' idle connections and gives the server a moment to notice: with a connection open, Shutdown
// of the HTTP library looks again only after 100 ms.
func hangUp(s *api.Server) {
	http.DefaultClient.CloseIdleConnections()
	for until := time.Now().Add(20 * time.Millisecond); s.Connections() > 0 && time.Now().Before(until); {
		<-time.After(time.Millisecond)
	}
}

// in reports to a subtest.
func (h *house) in(t testing.TB) *house {
	sub := *h
	sub.t = t
	return &sub
}

func (h *house) listen(services api.Services) string {
	ln, err := api.Listen("127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	go func() { h.served <- h.server.Serve(ln, services) }()
	return ln.Addr().String()
}

// apply declares d as the whole content of a file.
func (h *house) apply(path string, d *catalog.Declared) {
	h.t.Helper()
	change := &catalog.Change{Files: []catalog.FileChange{{
		Path: path, Row: &catalog.FileRow{Refs: d.Refs()}, Declared: d, Bytes: []byte(path),
	}}}
	if _, err := h.resolver.Apply(change); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) newKey(d *catalog.Declared, name string, allow catalog.Permission, slugs ...string) string {
	text, id := catalog.NewKeyText()
	hash, err := catalog.ParseKeyHash(catalog.HashKeyText(text))
	if err != nil {
		h.t.Fatal(err)
	}
	d.Keys = append(d.Keys, catalog.Key{Name: name, ID: id, Hash: hash, Allow: allow, Projects: slugs})
	return text
}

// fixture declares three projects and a key of each kind.
func (h *house) fixture() *catalog.Declared {
	d := &catalog.Declared{}
	d.Projects = []catalog.ProjectConfig{
		project(1, "acme", "Acme Shop", catalog.StatusActive, "shop.acme.example", "*.acme.example", "!off.acme.example"),
		project(2, "globex", "Globex", catalog.StatusDraft, "globex.example", "!off.globex.example", "xn--bcher-kva.example"),
		project(3, "initech", "Initech", catalog.StatusSuspended, "initech.example"),
	}
	d.Projects[1].Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: "canary-jwt-secret"}
	h.all = h.newKey(d, "all", catalog.MayResolve|catalog.MayRead|catalog.MayWrite|catalog.MayMail|catalog.MaySecrets)
	h.onlyResolve = h.newKey(d, "resolve", catalog.MayResolve)
	h.onlyRead = h.newKey(d, "read", catalog.MayRead)
	h.onlyWrite = h.newKey(d, "write", catalog.MayWrite)
	h.onlyMail = h.newKey(d, "mail", catalog.MayMail)
	h.acme = h.newKey(d, "acme", catalog.MayRead|catalog.MayWrite, "acme")
	h.acmeResolve = h.newKey(d, "acme-resolve", catalog.MayResolve, "acme")
	h.expired = h.newKey(d, "expired", catalog.MayRead)
	d.Keys[len(d.Keys)-1].ExpiresAt = time.Now().Add(-time.Second)
	h.revoked, _ = catalog.NewKeyText()
	return d
}

// project declares a project; a domain that begins with "!" is inactive.
func project(id int64, slug, name, status string, domains ...string) catalog.ProjectConfig {
	uuid := catalog.DeriveProjectUUID(slug)
	p := catalog.ProjectConfig{
		Project: catalog.Project{ID: id, UUID: uuid, Name: name, Slug: slug, Status: status},
		Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings(),
	}
	p.Service.ID, p.Service.UUID = 100+id, catalog.DeriveUUID(catalog.KindServiceSettings, uuid)
	p.Auth.ID, p.Auth.UUID = 200+id, catalog.DeriveUUID(catalog.KindAuthSettings, uuid)
	for i, domain := range domains {
		domain, inactive := strings.CutPrefix(domain, "!")
		d := catalog.Domain{ID: 1000*id + int64(i), UUID: catalog.DeriveDomainUUID(uuid, domain), ProjectID: id, Name: domain, Primary: i == 0, Active: !inactive}
		p.Domains = append(p.Domains, d)
	}
	return p
}

// An answer is a response, read whole.
type answer struct {
	*http.Response
	body []byte
	json map[string]any
}

func (a *answer) code() string {
	e, _ := a.json["error"].(map[string]any)
	code, _ := e["code"].(string)
	return code
}

// fields lists the fields of error.details.
func (a *answer) fields() (fields []string) {
	e, _ := a.json["error"].(map[string]any)
	details, _ := e["details"].([]any)
	for _, d := range details {
		fields = append(fields, d.(map[string]any)["field"].(string))
	}
	return fields
}

// ask sends a request with the key ("" for none) and further headers as "Name: value".
func (h *house) ask(method, path, key string, headers ...string) *answer {
	h.t.Helper()
	return h.askBody(method, path, key, "", headers...)
}

func (h *house) askBody(method, path, key, body string, headers ...string) *answer {
	h.t.Helper()
	c := h.dial()
	defer c.Close()
	var b strings.Builder
	b.WriteString(method + " " + path + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n")
	if key != "" {
		b.WriteString("X-PLATFORM-KEY: " + key + "\r\n")
	}
	for _, line := range headers {
		b.WriteString(line + "\r\n")
	}
	if body != "" {
		b.WriteString("Content-Length: " + itoa(len(body)) + "\r\n")
	}
	c.send(b.String() + "\r\n" + body)
	a, err := c.read(method)
	if err != nil {
		h.t.Fatalf("no answer: %v", err)
	}
	h.conform(method, path, body, headers, a)
	return a
}

// conform validates an exchange against openapi.yaml.
func (h *house) conform(method, path, body string, headers []string, a *answer) {
	h.t.Helper()
	header := http.Header{}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ":")
		header.Add(name, strings.TrimSpace(value))
	}
	err := describedAPI(h.t).conform(&asked{method: method, target: path, header: header, body: []byte(body),
		status: a.StatusCode, answer: a.Header, answerBody: a.body})
	if err != nil {
		h.t.Error(err)
	}
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// A wire is a raw connection to the server.
type wire struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func (h *house) dial() *wire {
	h.t.Helper()
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	return newWire(h.t, c)
}

// expectHead is the head of a request for several domains with a body of n bytes, which waits for "100 Continue".
func (h *house) expectHead(n int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nX-PLATFORM-KEY: %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
		resolveURL, h.all, n)
}

// skipLines reads n lines.
func (w *wire) skipLines(n int) {
	w.t.Helper()
	for range n {
		if _, err := w.r.ReadString('\n'); err != nil {
			w.t.Fatal(err)
		}
	}
}

func newWire(t testing.TB, c net.Conn) *wire {
	c.SetDeadline(time.Now().Add(testrig.Patience))
	return &wire{Conn: c, t: t, r: bufio.NewReader(c)}
}

func (w *wire) send(s string) {
	w.t.Helper()
	if _, err := io.WriteString(w.Conn, s); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// answer reads one response.
func (w *wire) answer(method string) *answer {
	w.t.Helper()
	a, err := w.tryAnswer(method)
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	return a
}

func (w *wire) tryAnswer(method string) (*answer, error) {
	a, err := w.read(method)
	if err == nil && a.json != nil {
		if err := describedAPI(w.t).conformEnvelope(a.body); err != nil {
			w.t.Error(err)
		}
	}
	return a, err
}

// read reads one response without validating it.
func (w *wire) read(method string) (*answer, error) {
	resp, err := http.ReadResponse(w.r, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	a := &answer{Response: resp}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &a.json); err != nil {
			w.t.Errorf("body is no JSON object: %v: %q", err, a.body)
		}
	}
	return a, nil
}

// closed checks that the server sends nothing more and closes.
func (w *wire) closed() {
	w.t.Helper()
	if rest, err := io.ReadAll(w.r); len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		w.t.Errorf("after the answer came %q, %v; want the end of the connection", rest, err)
	}
}

// closedGently is closed, but a reset fails: it can destroy an answer that the client has yet to read.
func (w *wire) closedGently() {
	w.t.Helper()
	if rest, err := io.ReadAll(w.r); len(rest) > 0 || err != nil {
		w.t.Errorf("after the answer came %q, %v; want a quiet end of the connection", rest, err)
	}
}

// check compares status and code.
func (a *answer) check(t testing.TB, status int, code string) {
	t.Helper()
	if a.StatusCode != status || a.code() != code {
		t.Errorf("got %d %s, want %d %s: %s", a.StatusCode, a.code(), status, code, a.body)
	}
}
