package api_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/resolver/catalog"
)

// A standIn is the authority of an edge.
type standIn struct {
	answer string

	mu  sync.Mutex // guards the fields below
	got []string
	err error
}

func (a *standIn) Forward(_ context.Context, _ string, request []byte) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = append(a.got, string(request))
	return []byte(a.answer), a.err
}

func (a *standIn) State() string                       { return "edge1 itself has no whole tree yet" }
func (a *standIn) Age(time.Time) (time.Duration, bool) { return 0, false }

// requests returns what it was asked so far.
func (a *standIn) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.got)
}

// fail makes it answer with an error.
func (a *standIn) fail(code catalog.Code, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = &catalog.Error{Code: code, Message: message}
}

// TestEdgeForwards: an edge sends to the authority what only that can do, with the caller's key and this node's request
// id, and nothing that it can refuse itself.
func TestEdgeForwards(t *testing.T) {
	t.Parallel()
	a := &standIn{answer: "HTTP/1.1 201 Created\r\nContent-Type: application/json; charset=utf-8\r\nX-Request-Id: mine-1\r\nLocation: /api/platform/projects/7\r\n" +
		"X-Config-Position: 8f3a21c09b7e44d1.812\r\n" +
		"Connection: close\r\nContent-Length: 2\r\n\r\n{}"}
	h := start(t, func(o *api.Options) { o.Cluster.Edge = a })
	post := func(key string) *rawAnswer { return h.postRaw(t, key) }
	if got := post(h.all); got.status != 201 || got.header.Get("Location") != "/api/platform/projects/7" || got.body != "{}" {
		t.Errorf("the answer is %d %v %q", got.status, got.header, got.body)
	}
	if got := post(h.all).header.Get("X-Config-Position"); got != "8f3a21c09b7e44d1.812" {
		t.Errorf("the position is %q, not the authority's", got)
	}
	if got := a.requests(); len(got) != 2 || !strings.HasPrefix(got[0], "POST /api/platform/projects HTTP/1.1\r\n") || !strings.HasSuffix(got[0], "\r\n\r\n{\"name\":\"x\"}") ||
		!strings.Contains(got[0], h.all) || !strings.Contains(got[0], "X-Request-Id: mine-1") || !strings.Contains(got[0], "Content-Length: 12") {
		t.Errorf("the authority gets %q", got)
	}
	if got := post(h.revoked); got.status != 401 || len(a.requests()) != 2 {
		t.Errorf("a revoked key: %d, and the authority gets %d requests", got.status, len(a.requests()))
	}
	a.fail(catalog.CodeOutcomeUnknown, "no answer")
	if got := post(h.all); got.status != 504 || !strings.Contains(got.body, "OUTCOME_UNKNOWN") || got.header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("without an answer: %d %q", got.status, got.body)
	}
	a.fail(catalog.CodeUnavailable, "away")
	if got := post(h.all); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("without an authority: %d %v", got.status, got.header)
	}
	h.ask("GET", resolveURL+"?domain=shop.acme.example", h.all).check(t, 200, "")
	h.server.SetStale(true)
	h.ask("GET", resolveURL+"?domain=shop.acme.example", h.all).check(t, 503, "UNAVAILABLE")
	h.server.SetStale(false)
	h.ask("GET", resolveURL+"?domain=shop.acme.example", h.all).check(t, 200, "")
}

func TestEdges(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.ask("GET", "/api/platform/edges", h.all).check(t, 404, "NOT_FOUND")
	h.ask("GET", "/api/platform/edges", h.acme).check(t, 403, "FORBIDDEN")
	commit := "/api/platform/commits/" + strings.Repeat("0a", 20)
	h.ask("GET", commit, h.all).check(t, 409, "GIT_NOT_ENABLED")
	h.ask("GET", commit+"b", h.all).check(t, 400, "VALIDATION_ERROR")
	h.ask("GET", commit, h.onlyResolve).check(t, 403, "FORBIDDEN")
	list := `[{"name":"fra1","version":"1.4.0","position":"8f3a21c09b7e44d1.812","generation":812,"current":true,"lagMs":0,"beatAgeMs":412.5,"ready":true,"problem":""}]`
	h = start(t, func(o *api.Options) { o.Cluster.Edges = func() ([]byte, error) { return []byte(list), nil } })
	h.ask("GET", "/api/platform/edges", h.all).check(t, 200, "")
	h.ask("GET", "/api/platform/edges", h.onlyResolve).check(t, 403, "FORBIDDEN")
}

// A rawAnswer is an answer that is not compared with the API's description: an edge passes on what the authority said.
type rawAnswer struct {
	status int
	header http.Header
	body   string
}

func (h *house) postRaw(t *testing.T, key string) *rawAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.addr+"/api/platform/projects", strings.NewReader(`{"name":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-PLATFORM-KEY", key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", "mine-1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &rawAnswer{res.StatusCode, res.Header, string(body)}
}
