package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	intercept "github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"

	"fingerpost/cmd/testrig"
)

// The list of projects is by name, sorts, searches as one types, and shows how each project is.
func TestConsoleProjects(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	names := func() (list []string) {
		t.Helper()
		b.eval(`[...document.querySelectorAll(".projects tbody th a")].map(a => a.textContent)`, &list)
		return list
	}
	b.open("/console/projects")
	b.sees("Acme Shop", "shop.acme.example", "plan=gold", "Mail", "Problems")
	up := names()
	if len(up) < 3 || !slices.IsSorted(up) {
		t.Errorf("the list is %q, and not by name", up)
	}
	b.do(chromedp.Click(`.projects thead a[href*="sort=-name"]`, chromedp.ByQuery), chromedp.WaitReady(`th[aria-sort=descending]`, chromedp.ByQuery))
	if down := names(); len(down) != len(up) || down[0] != up[len(up)-1] {
		t.Errorf("from the end it is %q", down)
	}
	b.do(chromedp.SendKeys("#q", "acme", chromedp.ByQuery), chromedp.Poll(`location.search.includes("q=acme")`, nil))
	if found := names(); len(found) == 0 || found[0] != "Acme Shop" {
		t.Errorf("a search finds %q", found)
	}
	b.open("/console/projects?sort=unknown&page=9999")
	b.sees("Projects")

	v.put("acme.hcl", strings.Replace(v.text("acme.hcl"), `status      = "ACTIVE"`, `status      = "ACTIV"`, 1))
	if err := poll(testrig.Patience, func() error {
		b.open("/console/projects?q=acme")
		if !strings.Contains(b.text("main"), "1 error") {
			return errors.New("no problem yet")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	b.open("/console/projects/acme")
	b.sees("The file of this project has errors", "See the problem")
	b = v.signedIn(v.shopOnly)
	b.open("/console/projects")
	if text := b.text("main"); strings.Contains(text, "error") || strings.Contains(text, "Problems") {
		t.Errorf("a key for one project sees\n%s", text)
	}
}

// A project's address has its slug; the id leads there.
func TestConsoleProjectAddress(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	b.open("/console/projects/" + v.acme)
	if at := b.at(); at != "/console/projects/acme" {
		t.Errorf("the id leads to %s", at)
	}
	b.sees("Domains", "Settings", "Templates", "Changes", "File")
	var missing []string
	b.eval(`[...document.querySelectorAll(".sections a")].map(a => a.getAttribute("href")).filter(h => !document.querySelector(h))`, &missing)
	if len(missing) != 0 {
		t.Errorf("sections that are not there: %q", missing)
	}
	b.open("/console/projects/none-of-this-name")
	b.sees("No such project")
	b.open("/console/projects/..%2facme")
	b.sees("no such page")

	// A slug of digits is not taken for an id.
	generation := v.generation()
	v.put("digits.hcl", "project \"123\" {\n  name = \"Digits\"\n}\n")
	v.waitGeneration(generation + 1)
	b.open("/console/projects/123")
	b.sees("Digits")
	b = v.signedIn(v.shopOnly)
	b.open("/console/projects/123")
	b.sees("Not allowed")
}

// value returns what stands in a control.
func (b *tab) value(control string) (text string) {
	b.t.Helper()
	b.eval(fmt.Sprintf("document.querySelector(%q)?.value ?? ''", control), &text)
	return text
}

// A new project takes its first domain along: one diff, one save.
func TestConsoleFirstDomain(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	b.open("/console/edit?kind=project")
	b.fill("name", "Café Zürich", "domains", "cafe.zuerich.example")
	b.press("Show the change")
	b.sees(`+project "cafe-zurich"`, `domain "cafe.zuerich.example" { primary = true }`)
	b.press("Save")
	if at := b.at(); at != "/console/projects/cafe-zurich" {
		t.Errorf("it ends at %s", at)
	}
	b.sees("Saved into the file, and live.", "cafe.zuerich.example", "primary")
	if got := v.get(resolvePath + "cafe.zuerich.example"); got.status != http.StatusOK {
		t.Errorf("the domain answers %d %s", got.status, got.body)
	}
	b.open("/console/edit?kind=project")
	b.fill("name", "Another", "slug", "UPPER")
	b.press("Show the change")
	b.sees("1 field to look at", "may hold lower-case letters")
	b.open("/console/edit?kind=project")
	b.fill("name", "Another", "domains", "SHOP.acme.example")
	b.press("Show the change")
	b.sees("1 field to look at", "First domain: belongs to a project already")
	if got := v.get("/api/platform/projects/by-slug/another"); got.status != http.StatusNotFound {
		t.Errorf("half of it is there: %d", got.status)
	}
}

// The slug of a new project follows from its name while a person types, until the person gives it another one. That of a
// project that is there stays.
func TestConsoleSlug(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	types := func(text, suggests string) {
		t.Helper()
		b.do(chromedp.SendKeys("#f-name", text, chromedp.ByQuery))
		testrig.Eventually(t, "the slug "+suggests+" is suggested", func() bool { return b.value("#s-slug") == suggests })
	}
	b.open("/console/edit?kind=project")
	types("Café", "cafe")
	types(" Zürich", "cafe-zurich")
	if slug := b.value("#f-slug"); slug != "cafe-zurich" {
		t.Errorf("the form has the slug %q", slug)
	}
	b.fill("slug", "own")
	types(" 2", "cafe-zurich-2")
	if slug := b.value("#f-slug"); slug != "own" {
		t.Errorf("the person's slug has become %q", slug)
	}
	b.press("Show the change")
	b.sees(`+project "own"`)

	// A suggestion that comes late leaves the slug alone that was typed after the suggestion was asked for.
	b.open("/console/edit?kind=project")
	late := make(chan intercept.RequestID, 1) // one letter is one suggestion, however slowly letters are typed
	chromedp.ListenTarget(b.ctx, func(ev any) {
		if held, ok := ev.(*intercept.EventRequestPaused); ok {
			late <- held.RequestID
		}
	})
	b.do(intercept.Enable().WithPatterns([]*intercept.RequestPattern{{URLPattern: "*/console/edit?*"}}))
	b.fill("name", "L")
	asked := <-late
	b.fill("slug", "mine", "domains", "late.example")
	b.do(chromedp.Evaluate(`window.came = new Promise(r => document.addEventListener("htmx:afterRequest", r)).then(() => true); 0`, nil),
		intercept.ContinueRequest(asked))
	var came bool
	b.eval("window.came", &came)
	if slug := b.value("#f-slug"); slug != "mine" {
		t.Errorf("a late suggestion replaced the slug by %q", slug)
	}
	b.do(intercept.Disable())

	b.do(emulation.SetScriptExecutionDisabled(true)) // without a script, the diff shows it, and the way back to the form
	b.open("/console/edit?kind=project")
	b.fill("name", "Ærø & Söhne")
	b.press("Show the change")
	b.sees(`+project "aero-sohne"`)
	b.press("Change it")
	b.do(emulation.SetScriptExecutionDisabled(false))
	if slug := b.value("#f-slug"); slug != "aero-sohne" {
		t.Errorf("back in the form the slug is %q", slug)
	}
	b.open("/console/edit?kind=project&project=" + v.acme)
	b.do(chromedp.SendKeys("#f-name", " GmbH", chromedp.ByQuery))
	b.press("Show the change")
	b.sees("+ name", "GmbH")
	if text := b.text("main"); strings.Contains(text, `project "acme-shop`) {
		t.Errorf("the slug has changed:\n%s", text)
	}
}
