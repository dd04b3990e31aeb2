package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

// hookFiles are webhooks in each state of each attribute.
const hookFiles = `webhook "plain" {
  url    = "https://plain.example/x"
  secret = env("HOOK_SECRET")
}

webhook "all" {
  url      = "https://all.example/x?y=1&z=2"
  secret   = [env("HOOK_SECRET"), env("HOOK_SECRET_OLD")]
  events   = ["project.*", "mail.failed"]
  projects = ["acme", "globex"]
  active   = false
}

webhook "left" {
  url      = "https://left.example/"
  secret   = env("HOOK_SECRET")
  events   = ["*"]
  projects = []
}
`

func newHookRig(t *testing.T) (*consoleRig, *guest) {
	t.Helper()
	t.Setenv("HOOK_SECRET", catalog.NewWebhookSecret())
	t.Setenv("HOOK_SECRET_OLD", catalog.NewWebhookSecret())
	r := newConsoleRig(t, newDesk(t, map[string]string{"hooks.hcl": hookFiles, "sealing.hcl": webhookDesk["sealing.hcl"],
		"acme.hcl": webhookDesk["acme.hcl"], "globex.hcl": "project \"globex\" {\n  name = \"Globex\"\n}\n"}))
	return r, r.signIn(t, r.key)
}

// TestConsoleWebhookForms: submitted untouched a form changes nothing, in whatever state the webhook is; with one field
// changed exactly that field is sent.
func TestConsoleWebhookForms(t *testing.T) {
	r, g := newHookRig(t)
	g.send("/console/edit?kind=webhook", nil)
	g.nothingChanged("a new webhook")
	f := func(name, field, value string, want any) {
		t.Helper()
		g.send("/console/edit?kind=webhook&id="+name, nil)
		sent, seen := g.controls("/console/edit")
		if i := slices.IndexFunc(seen, func(c control) bool { return c.name == field }); i < 0 {
			t.Fatalf("%s: the form has no %s: %d %s", name, field, g.status, visibleText(g.page))
		}
		call := g.changed(name, sent, field, value)
		if call == nil {
			return
		}
		if got, has := call.body[field]; len(call.body) != 1 || !has || !sameJSON(got, want) || call.status != http.StatusOK || call.header.Get("If-Match") == "" {
			t.Errorf("%s: %s = %q sends %v with %q: %d %s", name, field, value, call.body, call.header.Get("If-Match"), call.status, visibleText(g.page))
		}
	}
	for _, name := range []string{"plain", "all", "left"} {
		g.send("/console/edit?kind=webhook&id="+name, nil)
		g.nothingChanged(name)
		f(name, "url", "https://other.example/", "https://other.example/")
		f(name, "events", "domain.*\nkey.rotate", []any{"domain.*", "key.rotate"})
		f(name, "projects", "globex", []any{"globex"})
	}
	f("plain", "projects", "(none)", []any{})
	f("plain", "active", "no", false)
	f("all", "events", "", nil)
	f("all", "projects", "", nil)
	f("all", "active", "yes", true)
	f("left", "projects", "", nil)
	g.send("/console/edit?kind=webhook&id=nobody", nil)
	if g.status != http.StatusNotFound {
		t.Errorf("a webhook that does not exist: %d", g.status)
	}
	// All that is wrong is shown at its field.
	g.send("/console/edit?kind=webhook", nil)
	sent, _ := g.controls("/console/edit")
	sent.Set("name", "A B")
	sent.Set("url", "ftp://x")
	sent.Set("events", "domian.update")
	g.send("/console/edit", sent)
	for _, want := range []string{"f-name-error", "f-url-error", "f-events-error", "did you mean domain.update?"} {
		if !strings.Contains(g.page, want) {
			t.Errorf("%s is missing: %d %s", want, g.status, visibleText(g.page))
		}
	}
	if n := len(r.resolver.Webhooks()); n != 3 {
		t.Errorf("%d webhooks", n)
	}
}

func sameJSON(a, b any) bool {
	x, isList := a.([]any)
	y, wantList := b.([]any)
	if isList || wantList {
		return isList == wantList && slices.Equal(x, y)
	}
	return a == b
}

// saved saves the draft that the page shows, and returns the last call.
func (g *guest) saved(do string) *apiCall {
	g.t.Helper()
	sent, _ := g.controls(g.path)
	if sent == nil {
		g.t.Fatalf("no diff, but %d %s", g.status, visibleText(g.page))
	}
	sent.Set("do", do)
	g.send(g.path, sent)
	return &g.calls[len(g.calls)-1]
}

// TestConsoleWebhookLife makes a webhook, rotates its secret, switches it off and on, and removes it. Each secret that is
// made is shown once; each change but a rotation can be proposed.
func TestConsoleWebhookLife(t *testing.T) {
	r, g := newHookRig(t)
	once := func(what string) string {
		t.Helper()
		_, rest, found := strings.Cut(g.page, `id="new-key">`)
		secret, _, _ := strings.Cut(rest, "<")
		secret = strings.NewReplacer("&#43;", "+", "&#61;", "=").Replace(secret)
		if !found || catalog.CheckWebhookSecret(secret) != "" || !strings.Contains(g.page, "secret of the webhook is shown this once") {
			t.Fatalf("%s: no secret, but %d %s", what, g.status, visibleText(g.page))
		}
		g.send(g.path, nil)
		if strings.Contains(g.page, "whsec_") {
			t.Errorf("%s: the secret is shown again", what)
		}
		return secret
	}
	g.send("/console/edit?kind=webhook", nil)
	sent, _ := g.controls("/console/edit")
	sent.Set("name", "crm")
	sent.Set("url", "https://crm.example/x")
	g.send("/console/edit", sent)
	if strings.Contains(g.page, "whsec_") || !strings.Contains(g.page, "sealed(") || !strings.Contains(g.page, "Propose it instead") {
		t.Fatalf("the diff: %d %s", g.status, visibleText(g.page))
	}
	g.saved("save")
	first := once("a new webhook")
	if !strings.Contains(g.page, `href="/console/webhooks/crm"`) || !strings.Contains(g.page, "https://crm.example/x") || strings.Contains(g.page, "Revoke") {
		t.Errorf("the list: %s", visibleText(g.page))
	}
	page := "/console/webhooks/crm"
	press := func(do string, more ...string) {
		t.Helper()
		g.send(page, nil)
		sent, _ := g.controls(page)
		if sent == nil {
			t.Fatalf("no button: %d %s", g.status, visibleText(g.page))
		}
		sent.Set("do", do)
		for i := 0; i < len(more); i += 2 {
			sent.Set(more[i], more[i+1])
		}
		g.send(page, sent)
	}
	for _, overlap := range []string{"24h", "7d", "30d", "1h", "0s"} {
		press("rotate", "overlap", overlap)
		if strings.Contains(g.page, "Propose") {
			t.Error("a rotation can be proposed")
		}
		if call := g.saved("propose"); g.status != http.StatusBadRequest || call.header.Get("X-Propose") != "" || !strings.Contains(g.page, "A rotation is always live") {
			t.Errorf("a rotation, proposed: %d %s", g.status, visibleText(g.page))
		}
		if call := g.saved("save"); call.body["overlap"] != overlap || call.path != webhooksPath+"/crm/rotate" || call.status != http.StatusOK {
			t.Errorf("%+v", call)
		}
		if next := once(overlap); next == first {
			t.Error("it is the same secret")
		}
	}
	if press("rotate", "overlap", "forever"); g.status != http.StatusBadRequest {
		t.Errorf("a rotation of a length that is not offered: %d", g.status)
	}
	press("off")
	sent, _ = g.controls(g.path)
	at := g.path
	sent.Set("do", "propose")
	sent.Set("proposal", "switch-off")
	g.send(at, sent)
	if call := g.calls[len(g.calls)-1]; call.header.Get("X-Propose") != "switch-off" || call.method != "PUT" {
		t.Errorf("proposed: %+v", call)
	}
	press("off")
	if call := g.saved("save"); call.body["active"] != false || len(call.body) != 1 || call.status != http.StatusOK || g.path != page {
		t.Errorf("%+v, then %s", call, g.path)
	}
	if !strings.Contains(g.page, "Switch on") || !strings.Contains(g.page, ">inactive<") {
		t.Errorf("once it is off: %s", visibleText(g.page))
	}
	press("on")
	g.saved("save")
	press("remove")
	if call := g.saved("save"); call.method != "DELETE" || call.status != http.StatusOK || g.path != "/console/webhooks" {
		t.Errorf("%+v, then %s", call, g.path)
	}
	if slices.ContainsFunc(r.resolver.Webhooks(), func(w catalog.Webhook) bool { return w.Name == "crm" }) {
		t.Error("it is still there")
	}
	if g.send(page, nil); g.status != http.StatusNotFound {
		t.Errorf("the page of a webhook that is gone: %d", g.status)
	}
	// The changes page tells of all, and links a webhook that has a page.
	g.send("/console/changes", nil)
	for _, want := range []string{"switched the webhook", "rotated the secret of the webhook", "removed the webhook"} {
		if !strings.Contains(g.page, want) {
			t.Errorf("%q is missing in %s", want, visibleText(g.page))
		}
	}
	if strings.Contains(g.page, `href="/console/webhooks/crm"`) {
		t.Error("what is gone is a link")
	}
	off := url.Values{"token": sent["token"], "do": {"off"}}
	g.send("/console/webhooks/plain", off)
	g.saved("save")
	if g.send("/console/changes", nil); !strings.Contains(g.page, `href="/console/webhooks/plain">plain</a> off`) {
		t.Errorf("no link to the webhook: %s", visibleText(g.page))
	}
	// The box knows webhooks by name.
	if g.send("/console/lookup?domain=plain", nil); g.path != "/console/webhooks/plain" {
		t.Errorf("the box leads to %s", g.path)
	}
}

// TestConsoleWebhooksAreForManagers: only a key with write and secrets on every project sees the entry of the menu, a page,
// a form or a button.
func TestConsoleWebhooksAreForManagers(t *testing.T) {
	files := map[string]string{"hooks.hcl": hookFiles, "acme.hcl": webhookDesk["acme.hcl"], "globex.hcl": "project \"globex\" {\n  name = \"Globex\"\n}\n"}
	keys := map[string]string{}
	for name, rights := range map[string]string{"no-secrets": `allow = ["read", "write", "mail"]`, "proposer": `allow = ["read", "propose", "secrets"]`,
		"tenant": "allow = [\"read\", \"write\", \"secrets\"]\n  projects = [\"acme\"]"} {
		keys[name], files["key-"+name+".hcl"] = keyFile(name, rights)
	}
	t.Setenv("HOOK_SECRET", catalog.NewWebhookSecret())
	t.Setenv("HOOK_SECRET_OLD", catalog.NewWebhookSecret())
	r := newConsoleRig(t, newDesk(t, files))
	for name, key := range keys {
		g := r.signIn(t, key)
		g.send("/console/projects", nil)
		token, _, _ := strings.Cut(strings.SplitAfter(g.page, `name="token" value="`)[1], `"`)
		if strings.Contains(g.page, "/console/webhooks") {
			t.Errorf("%s: the menu has webhooks", name)
		}
		for _, path := range []string{"/console/webhooks", "/console/webhooks/plain", "/console/webhooks/nobody", "/console/webhooks/plain/deliveries/1.2.plain",
			"/console/edit?kind=webhook", "/console/edit?kind=webhook&id=plain"} {
			if g.send(path, nil); g.status != http.StatusForbidden || !strings.Contains(g.page, "requires") || strings.Contains(g.page, "plain.example") {
				t.Errorf("%s: %s: %d %s", name, path, g.status, visibleText(g.page))
			}
		}
		before := len(g.calls)
		for _, do := range []string{"test", "off", "remove", "rotate", "resume", "again", "replay"} {
			if g.send("/console/webhooks/plain", url.Values{"token": {token}, "do": {do}}); g.status != http.StatusForbidden {
				t.Errorf("%s: %s: %d", name, do, g.status)
			}
		}
		if len(g.calls) != before {
			t.Errorf("%s: calls were made", name)
		}
		if g.send("/console/lookup?domain=plain", nil); g.path != "/console/lookup?domain=plain" {
			t.Errorf("%s: the box leads to %s", name, g.path)
		}
	}
	// A form without the token of the session does nothing.
	g := r.signIn(t, r.key)
	before := len(g.calls)
	if g.send("/console/webhooks/plain", url.Values{"do": {"remove"}}); g.status != http.StatusForbidden || len(g.calls) != before {
		t.Errorf("without a token: %d", g.status)
	}
}
