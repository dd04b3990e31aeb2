package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A pipeEdge is an edge's way to an authority in the same process.
type pipeEdge struct {
	pipe *api.Pipe
	away atomic.Bool
}

func (e *pipeEdge) Forward(ctx context.Context, _ string, request []byte) ([]byte, error) {
	if e.away.Load() {
		return nil, &catalog.Error{Code: catalog.CodeUnavailable, Message: "the authority is away"}
	}
	ours, err := e.pipe.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	go func() { _, _ = ours.Write(request) }()
	return io.ReadAll(ours)
}

func (e *pipeEdge) State() string                       { return "" }
func (e *pipeEdge) Age(time.Time) (time.Duration, bool) { return 0, false }

// An edgeRig is an authority and an edge with the same files. What changes at one of them, the other does not learn.
type edgeRig struct {
	*accountRig // the edge
	authority   *accountRig
	way         *pipeEdge
}

func newEdgeRig(t *testing.T, rules ...string) *edgeRig {
	t.Helper()
	r := &edgeRig{authority: newAccountRig(t, nil, rules...), way: &pipeEdge{pipe: api.NewClusterPipe()}}
	go func() { _ = r.authority.server.Serve(r.way.pipe, api.Platform|api.Mail) }()
	r.accountRig = newAccountRig(t, r.way, rules...)
	return r
}

// ended waits until a browser is signed out, and returns why.
func (r *loginRig) ended() (why string) {
	r.t.Helper()
	testrig.Eventually(r.t, "the session has ended", func() bool {
		res := r.open("/console/projects")
		u, err := url.Parse(res.Header.Get("Location"))
		if res.StatusCode != http.StatusSeeOther || err != nil {
			return false
		}
		why = u.Query().Get("why")
		return true
	})
	return why
}

// People sign in at an edge by the authority, which knows the provider, and judges their writes by its own rules.
func TestConsoleLoginAtEdge(t *testing.T) {
	t.Parallel()
	ops, shop := rule("groups", "ops", `"read", "write"`, ""), rule("groups", "shop", `"read"`, `"acme"`)
	r := newEdgeRig(t, ops, shop)
	b := newBrowser(r.house)
	if b.send(signIn, nil); !strings.Contains(b.page, `href="/console/login/company?to=%2Fconsole%2F">Sign in with company`) {
		t.Errorf("the sign-in page of the edge:\n%s", b.page)
	}
	ada := r.as("ops")
	if r.people.began.Load() != 0 || r.authority.people.began.Load() != 1 {
		t.Error("the edge has asked the provider")
	}
	draft := ada.suspend("acme")
	if res := ada.post(draft, url.Values{"do": {"save"}}); res.StatusCode != http.StatusSeeOther {
		t.Fatalf("the save: %d\n%s", res.StatusCode, ada.page)
	}
	if p, err := r.authority.resolver.ProjectBySlug("acme"); err != nil || p.Status != catalog.StatusSuspended {
		t.Errorf("the project at the authority is %v, %v", p.Status, err)
	}
	if e := r.authority.audit(t, r.authority.key, "?limit=1")[0]; e["door"] != "console" || e["subject"] != issuerOfTests+"|ada" ||
		e["actor"] != "Ada Lovelace <ada@acme.example>" {
		t.Errorf("the trail has %v", e)
	}
	bob := r.as("shop")
	if bob.open("/console/projects"); !strings.Contains(bob.page, "Acme") || strings.Contains(bob.page, "Globex") {
		t.Errorf("whom a rule lets read one project sees:\n%s", bob.page)
	}
	if res := bob.open("/console/changes"); res.StatusCode != http.StatusOK || !strings.Contains(bob.page, "ada") && !strings.Contains(bob.page, "Ada") {
		t.Errorf("the trail of the authority: %d\n%s", res.StatusCode, bob.page)
	}

	// The authority's rules count, also before the edge has them.
	draft = ada.suspend("globex")
	r.authority.rules(rule("groups", "ops", `"read"`, ""), shop)
	if res := ada.post(draft, url.Values{"do": {"save"}}); res.StatusCode != http.StatusForbidden {
		t.Errorf("a write without a rule: %d\n%s", res.StatusCode, ada.page)
	}
	r.authority.rules(shop)
	if res := ada.post(draft, url.Values{"do": {"save"}}); res.StatusCode == http.StatusSeeOther {
		t.Errorf("a write of somebody whom no rule lets in: %d", res.StatusCode)
	}
	if p, err := r.authority.resolver.ProjectBySlug("globex"); err != nil || p.Status == catalog.StatusSuspended {
		t.Errorf("the project at the authority is %v, %v", p.Status, err)
	}
	if why := ada.ended(); why != "authority" {
		t.Errorf("the session has ended because of %q", why)
	}
	if ada.send(signIn+"?why=authority", nil); !strings.Contains(ada.page, "does not know it any more") {
		t.Error(ada.page)
	}
	r.authority.rules(ops, shop)
	// So do those of the edge, which may be the newer ones.
	ada = r.as("ops")
	r.rules(shop)
	if why := ada.ended(); why != "rules" {
		t.Errorf("the session has ended because of %q", why)
	}
}

// The authority lists the sessions of its edges, and ends them. An edge tells it which have ended there.
func TestSessionsOfEdges(t *testing.T) {
	t.Parallel()
	r := newEdgeRig(t, rule("groups", "ops", `"read", "write"`, ""))
	here, there := r.authority.as("ops"), r.as("ops")
	at := func() int {
		here.open("/console/sessions")
		return strings.Count(here.page, "at an edge</span>")
	}
	if at() != 1 {
		t.Errorf("the sessions:\n%s", here.page)
	}
	there.open("/console/projects")
	token := formToken.FindStringSubmatch(there.page)[1]
	if res := there.send("/console/sign-out", url.Values{"token": {token}}, "Cookie", there.cookie); res.StatusCode != http.StatusSeeOther {
		t.Errorf("sign-out: %d", res.StatusCode)
	}
	testrig.Eventually(t, "the authority knows that the session has ended", func() bool { return at() == 0 })

	there = r.as("ops")
	here.post("/console/sessions/others", url.Values{})
	if at() != 0 {
		t.Errorf("the sessions:\n%s", here.page)
	}
	if res := there.open("/console/projects"); res.StatusCode != http.StatusOK {
		t.Errorf("the edge has asked the authority already: %d", res.StatusCode)
	}
	testrig.Eventually(t, "the edge has asked the authority", func() bool {
		r.passed.Add(int64(time.Minute))
		return there.open("/console/projects").StatusCode == http.StatusSeeOther
	})
	if why := there.ended(); why != "authority" {
		t.Errorf("the session has ended because of %q", why)
	}

	// Twenty sessions of a person, wherever they are.
	for range 19 {
		r.as("ops")
	}
	if at() != 19 {
		t.Errorf("%d sessions at the edge", at())
	}
	r.as("ops")
	if res := here.open("/console/sessions"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("the oldest of 21 sessions goes on: %d", res.StatusCode)
	}
}

// What fails at an edge is said in words, and nobody but an edge can have the authority sign somebody in.
func TestConsoleLoginAtEdgeFails(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newEdgeRig(t, rule("groups", "ops", `"read"`, ""))
	b := &loginRig{linkRig: newBrowser(r.house), desk: r.people}
	if res := b.as("none"); res.StatusCode != http.StatusForbidden || b.cookie != "" || !strings.Contains(b.page, "no rule of the login") ||
		!strings.Contains(b.page, "/ops") {
		t.Errorf("whom no rule lets in: %d\n%s", res.StatusCode, b.page)
	}
	if res := b.as("nobody"); res.StatusCode != http.StatusBadRequest || !strings.Contains(b.page, "not begun in this browser") {
		t.Errorf("a bad callback: %d\n%s", res.StatusCode, b.page)
	}
	if res := b.send("/console/login/other", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("a login that does not exist: %d", res.StatusCode)
	}
	call := fmt.Sprintf(`{"Finish":{"Login":"company","Query":{"code":["ops"],"state":["flow0001"]},"Cookie":%q}}`, flowOf("flow0001"))
	for name, h := range map[string]*house{"the authority": r.authority.house, "the edge": r.house} {
		a := h.askBody("POST", "/cluster/sign-in", r.authority.key, call, "Content-Type: application/json", "X-Fingerpost-Door: console")
		if a.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers anybody: %d %s", name, a.StatusCode, a.body)
		}
	}
	for _, bad := range []string{"", "{", "[]", `{"Begin":{"Peer":"x"}}`, `{"End":"` + strings.Repeat("x", 200<<10) + `"}`} {
		answer, err := r.way.Forward(t.Context(), "", fmt.Appendf(nil, "POST /cluster/sign-in HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+
			"Content-Length: %d\r\n\r\n%s", len(bad), bad))
		if status, _, _ := strings.Cut(string(answer), "\r\n"); err != nil || !strings.Contains(status, " 4") {
			t.Errorf("%.30q: %s, %v", bad, status, err)
		}
	}

	for answer, want := range map[string]string{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n": "older release",
		"": "could not sign anybody in", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{": "could not sign anybody in",
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}": "could not sign anybody in"} {
		odd := newBrowser(newAccountRig(t, &standIn{answer: answer}, rule("groups", "ops", `"read"`, "")).house)
		if res := odd.send("/console/login/company", nil); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(odd.page, want) {
			t.Errorf("an authority that answers %q: %d\n%s", answer, res.StatusCode, odd.page)
		}
	}

	r.way.away.Store(true)
	if res := b.send("/console/login/company", nil); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(b.page, "does not answer") {
		t.Errorf("without the authority: %d\n%s", res.StatusCode, b.page)
	}
	if b.send(signIn, nil); !strings.Contains(b.page, "does not answer") {
		t.Errorf("the button says nothing:\n%s", b.page)
	}
	if res := b.send(signIn, url.Values{"key": {r.key}}); res.StatusCode != http.StatusSeeOther {
		t.Errorf("a key without the authority: %d", res.StatusCode)
	}
	r.way.away.Store(false)
	r.as("ops")
	if b.send(signIn, nil); strings.Contains(b.page, "does not answer") {
		t.Errorf("the button says what was:\n%s", b.page)
	}
}
