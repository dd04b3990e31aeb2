package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"fingerpost/cmd/testrig"
)

// newGitVisit is a visit to a server with git, and with a key that may propose for one project.
func newGitVisit(t *testing.T) (v *visit, carol string) {
	t.Helper()
	t.Parallel()
	testrig.Slow(t)
	if !testrig.Compulsory("chromium") {
		t.Skip("takes a minute and chromium: FINGERPOST_NEED=chromium runs it")
	}
	v = &visit{test: t, browser: findBrowser(t)}
	files, admin, shopOnly := consoleFiles(25)
	role := &role{name: "carol", allow: []string{"read", "propose"}, shop: true}
	files["key-carol.hcl"] = role.file()
	v.rig, v.admin, v.shopOnly = idleRig(t, t.TempDir(), files), admin, shopOnly
	newGitRig(t, v.rig)
	v.flags = []string{"--git", "--git-ack", "commit"}
	v.start()
	v.acme = v.projectID("acme")
	return v, role.key
}

// signedInAs opens a browser, and signs a person in.
func (v *visit) signedInAs(key, name, email string) *tab {
	v.t.Helper()
	b := v.tab()
	b.open("/console/sign-in")
	b.fill("key", key, "name", name, "email", email)
	b.do(chromedp.Click(`//button[normalize-space(.)="Sign in"]`, chromedp.BySearch),
		chromedp.WaitReady("nav.main", chromedp.ByQuery))
	return b
}

// propose changes the project's name and proposes it.
func (v *visit) propose(b *tab, as, name, message string) {
	v.t.Helper()
	b.open("/console/edit?kind=project&project=" + v.acme)
	b.fill("name", name)
	b.press("Show the change")
	b.fill("proposal", as, "message", message)
	b.press("Propose")
}

// buttons lists what a page offers to press.
func (b *tab) buttons() (list string) {
	b.t.Helper()
	b.eval(`Array.from(document.querySelectorAll("main button, main a.button")).map(e => e.textContent.trim() +
		(e.disabled ? " (disabled)" : "")).join(", ")`, &list)
	return list
}

// Carol may propose and no more. She proposes a new name; Ada reads it as a pull request, and applies what she has read:
// not what Carol adds meanwhile.
func TestConsoleCarolProposes(t *testing.T) {
	v, key := newGitVisit(t)
	carol := v.signedInAs(key, "Carol", "carol@example.com")
	v.propose(carol, "rename-shop", "Acme Store", "The shop has a new name")
	if at := carol.at(); at != "/console/proposals/rename-shop" {
		t.Fatalf("after proposing: %s", at)
	}
	carol.sees("The shop has a new name", "can be applied", "proposed by Carol", "A key with write can apply it.",
		`~ name: "Acme Shop" → "Acme Store"`)
	if offered := carol.buttons(); offered != "Work in it, Drop" {
		t.Errorf("Carol is offered %s", offered)
	}
	var marked string
	carol.eval(`document.querySelector(".diff del").textContent + " → " + document.querySelector(".diff ins").textContent`, &marked)
	if marked != "Shop → Store" {
		t.Errorf("the marked words are %s", marked)
	}

	ada := v.signedInAs(v.admin, "Ada Lovelace", "ada@example.com")
	ada.open("/console/proposals")
	ada.sees("1 open proposal", "The shop has a new name")
	ada.press("The shop has a new name")
	ada.sees("proposed by Carol with the key carol", "It fits what is live", `~ name: "Acme Shop" → "Acme Store"`)
	if offered := ada.buttons(); offered != "Apply, Work in it, Drop" {
		t.Errorf("Ada is offered %s", offered)
	}

	carol.press("Work in it")
	carol.open("/console/edit?kind=project&project=" + v.acme)
	carol.fill("description", "Carol's own")
	carol.press("Show the change")
	carol.press("Save in rename-shop")

	ada.press("Apply")
	ada.sees("The proposal has changed since you looked.", "Carol's own")
	if got := v.get("/api/platform/projects/" + v.acme); !strings.Contains(got.body, `"Acme Shop"`) {
		t.Errorf("applied unseen: %s", got.body)
	}
	ada.press("Apply")
	ada.sees("The proposal rename-shop is applied, and live.", "Ada Lovelace applied the proposal rename-shop",
		"Carol renamed Acme Shop to Acme Store, and changed “Description”")
	if got := v.get("/api/platform/projects/" + v.acme); !strings.Contains(got.body, `"Acme Store"`) ||
		!strings.Contains(got.body, "Carol's own") {
		t.Errorf("what is live: %s", got.body)
	}
	carol.open("/console/proposals/rename-shop")
	carol.sees("There is no such proposal. It may have been applied, dropped or merged")
}

// A proposal that conflicts says why it cannot be applied, and is dropped after a question; both without JavaScript.
// Every page of this story is for all eyes, on a phone, too.
func TestConsoleConflictingProposal(t *testing.T) {
	v, key := newGitVisit(t)
	carol := v.signedInAs(key, "Carol", "carol@example.com")
	v.propose(carol, "mine", "Acme by Carol", "")
	if got := v.ask(http.MethodPut, "/api/platform/projects/"+v.acme, v.admin, `{"name":"Acme by Ada"}`); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	ada := v.signedInAs(v.admin, "Ada Lovelace", "ada@example.com")
	ada.open("/console/proposals")
	ada.sees("conflicts")
	for name, path := range map[string]string{"proposals-conflict": "/console/proposals", "proposal-conflict": "/console/proposals/mine",
		"changes-none": "/console/changes?actor=nobody", "key-preset": "/console/edit?kind=key&preset=support"} {
		ada.open(path)
		ada.look(name)
	}
	ada.do(emulation.SetScriptExecutionDisabled(true))
	ada.open("/console/proposals/mine")
	ada.sees("cannot be applied", "the proposal and the branch have changed the same since")
	ada.press("Drop")
	ada.sees("Drop this proposal?")
	ada.press("Drop it")
	ada.sees("The proposal mine was dropped.", "Nothing is proposed.")
	if got := v.ask(http.MethodGet, "/api/platform/proposals", v.admin, ""); strings.Contains(got.body, "mine") {
		t.Errorf("it is still there: %s", got.body)
	}
}

// Times are picked in the zone of the browser, and sent as UTC.
func TestConsoleTimePickers(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	b.do(emulation.SetTimezoneOverride("America/New_York"))
	for _, page := range []string{"changes", "mail"} {
		b.open("/console/" + page + "?from=2020-01-31T09:30&until=2020-07-31T09:30")
		var shown string
		b.eval(`document.querySelector("#from").value + " " + document.querySelector("#until").value + " " +
			Array.from(document.querySelectorAll(".zone")).map(z => z.textContent).join(" ")`, &shown)
		if shown != "2020-01-31T04:30 2020-07-31T05:30 America/New_York America/New_York" {
			t.Errorf("%s: the pickers show %s", page, shown)
		}
		b.press("Filter")
		if at := b.at(); !strings.Contains(at, "from=2020-01-31T09%3A30") || !strings.Contains(at, "until=2020-07-31T09%3A30") {
			t.Errorf("%s: sent was %s", page, at)
		}
	}
}
