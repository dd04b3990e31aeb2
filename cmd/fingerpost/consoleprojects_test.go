package main

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

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
	b.sees("no such project")
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

// A new project asks for its first domain, which the form after it adds.
func TestConsoleFirstDomain(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	b.open("/console/edit?kind=project")
	b.fill("name", "Café Zürich", "firstDomain", "cafe.zuerich.example")
	b.press("Show the change")
	b.sees(`+project "cafe-zurich"`)
	b.press("Save")
	b.sees("New domain")
	var domain string
	if b.eval(`document.querySelector("main [name=domain]").value`, &domain); domain != "cafe.zuerich.example" {
		t.Errorf("the form has the domain %q", domain)
	}
	b.press("Show the change")
	b.sees(`domain "cafe.zuerich.example" { primary = true }`)
	b.press("Save")
	if at := b.at(); at != "/console/projects/cafe-zurich" {
		t.Errorf("it ends at %s", at)
	}
	if got := v.get(resolvePath + "cafe.zuerich.example"); got.status != http.StatusOK && got.status != http.StatusForbidden {
		t.Errorf("the domain answers %d %s", got.status, got.body)
	}
	b.open("/console/edit?kind=project")
	b.fill("name", "Another", "slug", "UPPER")
	b.press("Show the change")
	b.sees("1 field to look at", "may hold lower-case letters")
}
