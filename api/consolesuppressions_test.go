package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestConsoleSuppressions: the list of a project in the console. Keys that may not write see no form, and what is refused
// stays in the form.
func TestConsoleSuppressions(t *testing.T) {
	t.Parallel()
	reader, readerFile := keyFile("reader", `allow = ["read"]`)
	r := newConsoleRig(t, newDesk(t, map[string]string{"acme.hcl": webhookDesk["acme.hcl"], "reader.hcl": readerFile}))
	g := r.signIn(t, r.key)
	page := fmt.Sprintf("/console/suppressions/%d", r.projectID(t, "acme"))
	shows := func(g *guest, want ...string) {
		t.Helper()
		text := visibleText(g.page)
		for _, w := range want {
			if out, not := strings.CutPrefix(w, "!"); not == strings.Contains(text, out) {
				t.Errorf("%s: %q is wrong in %s", g.path, w, text)
			}
		}
	}
	g.send(page, nil)
	shows(g, "Everybody gets mail", "Add an address")
	sent, _ := g.controls(page)
	sent.Set("address", "<b>@example.com")
	sent.Set("note", "asked by phone")
	g.send(page, sent)
	if g.status != http.StatusBadRequest || !strings.Contains(g.page, `value="&lt;b&gt;@example.com"`) || !strings.Contains(g.page, `value="asked by phone"`) {
		t.Errorf("%d %s", g.status, visibleText(g.page))
	}
	sent.Set("address", "Ada@example.com")
	g.send(page, sent)
	shows(g, "1 entry", "Ada@example.com is on the list", "Ada@example.com", "manual", "asked by phone", "!Everybody")
	g.send(page+"?q=ADA&reason=manual", nil)
	shows(g, "Ada@example.com", "Show all")
	g.send(page+"?q=eve", nil)
	shows(g, "No address matches")
	g.send(page+"?reason=nothing", nil)
	shows(g, "must be one of complaint", "!Everybody", "!No address matches")

	other := r.signIn(t, reader)
	other.send(page, nil)
	shows(other, "Ada@example.com", "!Add an address", "!Remove")
	if other.send(page, url.Values{"do": {"remove"}, "address": {"Ada@example.com"}}); other.status != http.StatusForbidden {
		t.Errorf("a key that may read: %d", other.status)
	}
	g.send("/console/mail?project="+fmt.Sprint(r.projectID(t, "acme")), nil)
	shows(g, "Who gets no mail")
	g.send("/console/changes", nil)
	if !strings.Contains(g.page, "put <strong>Ada@example.com</strong> onto the suppression list of") {
		t.Errorf("%s", g.page)
	}

	g.send(page, nil)
	remove, _ := g.controls(page)
	if remove.Get("do") != "remove" {
		t.Fatalf("the first form of the page sends %v", remove)
	}
	g.send(page, remove)
	shows(g, "may get mail again", "Everybody gets mail")
	g.send(page, remove) // twice
	shows(g, "Everybody gets mail")

	// A line removes its own entry, and says what is left; the filter stays.
	list := page + "?q=kim"
	sent.Del("note")
	for _, category := range []string{"", "newsletter", "offers"} {
		sent.Set("address", "kim@example.com")
		sent.Set("reason", "unsubscribe")
		sent.Set("category", category)
		g.send(page, sent)
	}
	shows(g, "3 entries")
	g.send(list, nil)
	remove, _ = g.controls(list)
	if remove.Get("category") != "" {
		t.Fatalf("the first line is %v", remove)
	}
	g.send(list, remove)
	shows(g, "2 entries", "The entry is gone, and kim@example.com is on the list still, as unsubscribe of newsletter.", "Show all", "!may get mail again")
	g.send("/console/suppressions/1", nil)
	if g.status != http.StatusNotFound {
		t.Errorf("a project that does not exist: %d", g.status)
	}
}
