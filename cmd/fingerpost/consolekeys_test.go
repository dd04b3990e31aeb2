package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// The page Keys says what keys may do in words, and marks those that nobody uses and those that end soon. A new key
// begins with what its holder needs.
func TestConsoleKeyList(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	files, admin, _ := consoleFiles(25)
	for name, days := range map[string]int{"ending": 3, "over": -3, "later": 90} {
		_, id := catalog.NewKeyText()
		files["key-"+name+".hcl"] = fmt.Sprintf("key %q {\n  id = %q\n  hash = %q\n  allow = [\"resolve\", \"mail\"]\n  expires_at = %q\n}\n",
			name, id, catalog.HashKeyText(name), time.Now().UTC().AddDate(0, 0, days).Format("2006-01-02T15:04:05"))
	}
	r := idleRig(t, t.TempDir(), files)
	r.start()
	v := newVisitor(t, r.url)
	v.signIn(admin)
	row := func(name string) string {
		t.Helper()
		v.ask("/console/keys", nil)
		_, rest, found := strings.Cut(v.body, `data-label="Name">`+name)
		if !found {
			t.Fatalf("no row of %s: %s", name, cutMiddle(v.body, 2000))
		}
		text, _, _ := strings.Cut(rest, "</tr>")
		return text
	}
	for name, want := range map[string][]string{
		"admin":  {"yours", "<strong>admin</strong>", "just now", "never</td>"},
		"ending": {"<strong>service</strong>", "never used", `<span class="tag warn">in 2 days`},
		"over":   {`<span class="tag bad">expired</span>`, "3 days ago"},
		"later":  {"in 2 months"},
		"shop":   {"acme", "never used"},
	} {
		if name == "later" {
			want[0] = "in " // 89 days or 2 months: by the hour
		}
		for _, text := range want {
			if got := row(name); !strings.Contains(got, text) {
				t.Errorf("the row of %s does not say %q: %s", name, text, got)
			}
		}
	}
	for i, word := range catalog.Permissions {
		if want := word + ": " + catalog.PermissionHelp[i]; !strings.Contains(v.body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}

	for _, p := range catalog.Presets {
		v.ask("/console/edit?kind=key&preset="+p.Name, nil)
		for _, word := range catalog.Permissions {
			box := fmt.Sprintf(`name="allow" value=%q checked`, word)
			may := p.Allow&permission(t, word) != 0
			if strings.Contains(v.body, box) != may {
				t.Errorf("%s: %s is chosen: %v", p.Name, word, !may)
			}
		}
	}
	v.ask("/console/edit?kind=key&preset=nothing", nil)
	if v.expects(http.StatusOK, "Who is the key for?"); strings.Contains(v.body, " checked") {
		t.Error("a preset that there is not has chosen something")
	}
}

func permission(t *testing.T, word string) catalog.Permission {
	t.Helper()
	p, unknown := catalog.ParsePermissions([]string{word})
	if len(unknown) > 0 {
		t.Fatalf("no permission %s", word)
	}
	return p
}

// A person sees on which browsers a key is signed in, and ends all sessions but the own one.
func TestConsoleSessions(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	files, admin, shop := consoleFiles(25)
	r := idleRig(t, t.TempDir(), files)
	r.start()
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
	signIn := func(key, agent string) *visitor {
		v := newVisitor(t, r.url)
		v.ask("/console/sign-in", url.Values{"key": {key}}, "User-Agent", agent)
		return v
	}
	own, others := signIn(shop, firefox), []*visitor{signIn(shop, "<b>curl/8"), signIn(shop, firefox)}
	boss := signIn(admin, firefox)
	own.ask("/console/sessions", nil)
	own.expects(http.StatusOK, "Firefox on Linux", "curl", "just now", "End all others with your key", "this one")
	if strings.Contains(own.body, "admin") || strings.Contains(own.body, "<b>curl") {
		t.Errorf("what is not for this key, or not for a page: %s", own.body)
	}
	others[0].ask("/console/sessions/others", url.Values{"token": {own.token()}})
	others[0].expects(http.StatusForbidden)
	own.ask("/console/sessions/others", url.Values{"token": {own.token()}})
	own.expects(http.StatusOK, "All other sessions with your key have ended.")
	for _, v := range others {
		if v.ask("/console/projects", nil); !strings.HasPrefix(v.res.Request.URL.Path, "/console/sign-in") {
			t.Error("another session goes on")
		}
	}
	for _, v := range []*visitor{own, boss} {
		if v.ask("/console/projects", nil); v.res.Request.URL.Path != "/console/projects" {
			t.Error("the own session, or one of another key, has ended")
		}
	}
	boss.ask("/console/sessions", nil)
	if strings.Contains(boss.body, "End all others") {
		t.Error("there are no others of this key")
	}
}
