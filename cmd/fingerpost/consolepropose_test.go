package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"fingerpost/cmd/testrig"
)

// newGitVisit is a visit to a server with git, and with a key that may propose for one project. others are further roles.
func newGitVisit(t *testing.T, flags []string, others ...*role) (v *visit, carol string) {
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
	for _, other := range others {
		files["key-"+other.name+".hcl"] = other.file()
	}
	v.rig, v.admin, v.shopOnly = idleRig(t, t.TempDir(), files), admin, shopOnly
	newGitRig(t, v.rig)
	v.flags = append([]string{"--git", "--git-ack", "commit"}, flags...)
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
	v, key := newGitVisit(t, nil)
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
	if offered := ada.buttons(); offered != "Apply, Approve, Work in it, Drop" {
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
	v, key := newGitVisit(t, nil)
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

// A proposal that conflicts comes to its end without a terminal: the page names each field with was, live and proposed;
// Carol brings it up to date, Bob approves, and Ada applies it with a comment. Half of it is without JavaScript.
func TestConsoleProposalToTheEnd(t *testing.T) {
	bob := &role{name: "bob", allow: []string{"read", "write"}}
	v, key := newGitVisit(t, []string{"--propose-approvals", "1"}, bob)
	carol := v.signedInAs(key, "Carol", "carol@example.com")
	v.propose(carol, "autumn", "Acme by Carol", "The shop has a new name")
	carol.sees("waits for approval", "1 more person must approve of the proposal", "Nobody has approved of it as it is.")
	got := v.ask(http.MethodPut, "/api/platform/projects/"+v.acme, v.admin, `{"name":"Acme by Dora"}`,
		"X-Actor: Dora <dora@example.com>")
	if got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}

	const page = "/console/proposals/autumn"
	ada := v.signedInAs(v.admin, "Ada Lovelace", "ada@example.com")
	ada.open(page)
	ada.sees("cannot be applied", "What conflicts", "Acme by Dora", "Dora, ", "Acme by Carol")
	var row string
	ada.eval(`Array.from(document.querySelectorAll("#main table tbody tr:first-child > *, main table tbody tr:first-child > *"))
		.map(e => e.innerText.replace(/\s+/g, " ").trim()).join(" | ")`, &row)
	if !strings.HasPrefix(row, "Name project acme | Acme Shop | Acme by Dora Dora, ") || !strings.HasSuffix(row, " | Acme by Carol") {
		t.Errorf("the conflict is shown as %q", row)
	}
	if offered := ada.buttons(); offered != "Apply (disabled), Bring up to date, Work in it, Drop" {
		t.Errorf("Ada is offered %s", offered)
	}
	ada.look("proposal-conflicts")
	carol.do(emulation.SetScriptExecutionDisabled(true))
	carol.open(page)
	carol.press("Bring up to date")
	carol.sees("Read it again before it is applied.", "Bring proposal autumn up to date", "waits for approval")
	var reads string
	carol.do(emulation.SetScriptExecutionDisabled(false))
	if reads = carol.buttons(); reads != "Work in it, Drop" {
		t.Errorf("Carol is offered %s", reads)
	}

	ada.open(page)
	if offered := ada.buttons(); offered != "Apply (disabled), Approve, Work in it, Drop" {
		t.Errorf("Ada is offered %s", offered)
	}
	bobs := v.signedInAs(bob.key, "Bob Brown", "bob@example.com")
	bobs.open(page)
	bobs.do(emulation.SetScriptExecutionDisabled(true))
	bobs.press("Approve")
	bobs.sees("You have approved of the proposal as it is.", "Bob Brown with the key bob", "can be applied")
	ada.open(page)
	ada.look("proposal-approved")
	ada.fill("comment", "Read with Carol.")
	ada.press("Apply")
	ada.sees("The proposal autumn is applied, and live.", "Ada Lovelace applied the proposal autumn",
		"Bob Brown approved of the proposal autumn")
	if got := v.get("/api/platform/projects/" + v.acme); !strings.Contains(got.body, `"Acme by Carol"`) {
		t.Errorf("what is live: %s", got.body)
	}
	message := testrig.Git(t, v.dir, "log", "-1", "--format=%an%n%B")
	if !strings.HasPrefix(message, "Ada Lovelace\nMerge proposal autumn\n\nRead with Carol.\n\nApproved-by: Bob Brown <bob@example.com>\n") {
		t.Errorf("the merge: %s", message)
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
