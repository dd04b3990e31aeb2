package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A visit is a server with something to see, and a browser to see it with.
type visit struct {
	*rig
	test                     *testing.T
	browser, admin, shopOnly string // the browser's program; keys
	acme, worst              string // project ids
	post                     *testrig.Sink
	trap                     *httptest.Server // counts what leaves the console
	trapped                  atomic.Int64
}

// newVisit starts a server with more flags. It skips the test unless a browser is wanted: the pages take it minutes.
func newVisit(t *testing.T, flags ...string) *visit {
	t.Helper()
	t.Parallel()
	testrig.Slow(t)
	if !testrig.Compulsory("chromium") && os.Getenv("FINGERPOST_PICTURES") == "" {
		t.Skip("takes a minute and chromium: FINGERPOST_NEED=chromium or FINGERPOST_PICTURES=FOLDER runs it")
	}
	v := &visit{test: t, browser: findBrowser(t), post: testrig.NewSink(t)}
	v.trap = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { v.trapped.Add(1) }))
	t.Cleanup(v.trap.Close)
	var files map[string]string
	files, v.admin, v.shopOnly = consoleFiles(v.post.Port())
	files["worst.hcl"] = strings.ReplaceAll(files["worst.hcl"], "http://TRAP", v.trap.URL)
	v.rig = idleRig(t, t.TempDir(), files)
	v.flags = append([]string{"--smtp-allow", "127.0.0.0/8"}, flags...)
	v.start()
	v.acme, v.worst = v.projectID("acme"), v.projectID(strings.Repeat("a", 63))
	return v
}

// tab opens a browser.
func (v *visit) tab() *tab {
	v.t.Helper()
	return newTab(v.test, v.browser, v.url)
}

// signedIn opens a browser, and signs in with a key.
func (v *visit) signedIn(key string) *tab {
	v.t.Helper()
	b := v.tab()
	b.signIn(key)
	return b
}

// text reads a config file.
func (v *visit) text(file string) string {
	v.t.Helper()
	text, err := os.ReadFile(v.path(file))
	if err != nil {
		v.t.Fatal(err)
	}
	return string(text)
}

// A session begins with a key and a name, shows no script its cookie, and ends.
func TestConsoleSignIn(t *testing.T) {
	v := newVisit(t)
	b := v.tab()
	b.open("/console/projects")
	if at := b.at(); !strings.HasPrefix(at, "/console/sign-in") {
		t.Fatalf("without a session: %s", at)
	}
	b.fill("key", v.keys["ghost"])
	b.press("Sign in")
	b.sees("This key is not known here")
	b.fill("key", v.keys["resolve"])
	b.press("Sign in")
	b.sees("This key may not read")
	b.fill("key", v.admin, "name", "Ada")
	b.press("Sign in")
	b.sees("Give both your name and your mail address")
	b.fill("key", v.admin, "name", "Ada Lovelace", "email", "ada@example.com")
	b.press("Sign in")
	if at := b.at(); at != "/console/projects" {
		t.Errorf("after signing in: %s, which is not the page that was asked for", at)
	}
	var cookie string
	b.eval("document.cookie", &cookie)
	if cookie != "" {
		t.Errorf("a script sees the cookie %q", cookie)
	}
	b.do(chromedp.Click("details.menu > summary", chromedp.ByQuery), chromedp.Click(".who button", chromedp.ByQuery), chromedp.WaitReady("#key", chromedp.ByQuery))
	b.sees("You are signed out.")
	b.open("/console/")
	if at := b.at(); !strings.HasPrefix(at, "/console/sign-in") {
		t.Errorf("after signing out: %s", at)
	}
}

// A name leads to its project, with the record that decides.
func TestConsoleLookUp(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	b.open("/console/lookup")
	b.do(chromedp.SendKeys("#domain", "x.y.acme.example", chromedp.ByQuery))
	b.sees("leads to the project acme, by the wildcard *.acme.example")
	if at := b.at(); at != "/console/lookup?domain=x.y.acme.example" {
		t.Errorf("the link to share is %s", at)
	}
	fold := func(n int) {
		t.Helper()
		b.do(chromedp.Evaluate(fmt.Sprintf("document.querySelectorAll('#found summary')[%d].click()", n), nil))
	}
	fold(0)
	b.sees("Copy link", v.url+"/console/lookup?domain=x.y.acme.example", `curl -H "X-PLATFORM-KEY: $FINGERPOST_KEY"`)
	fold(1)
	b.sees("acme.hcl:3", "built in")
	fold(2)
	b.sees("Answer, form=flat")
	b.press("acme.hcl:3")
	if at := b.at(); at != "/console/projects/acme#L3" {
		t.Errorf("the line is at %s", at)
	}
	var line string
	if b.eval(`document.getElementById("L3").textContent`, &line); !strings.Contains(line, "Acme Shop") {
		t.Errorf("line 3 is %q", line)
	}
	b.open("/console/?domain=shop.acme.example") // an old link
	b.sees("by its own record", "would match next", "The answer was")
	b.open("/console/lookup?domain=old.acme.example")
	b.sees("The domain is inactive or not verified.")
	b.open("/console/lookup?domain=nowhere.example")
	b.sees("No project has this domain.")
}

// The story: where does https://shop.acme.example/cart lead? The start page answers it, and so does the header of every
// page, with the keyboard alone.
func TestConsoleStoryWhere(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.shopOnly)
	b.open("/console/")
	b.do(chromedp.KeyEvent("https://shop.acme.example/cart" + kb.Enter)) // the box has the focus
	b.sees("shop.acme.example leads to the project acme, by its own record")
	b.open("/console/projects")
	b.do(chromedp.KeyEvent("/"))
	var focus string
	if b.eval("document.activeElement.id", &focus); focus != "find" {
		t.Fatalf("/ leads to %q", focus)
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	if b.eval("document.activeElement.id", &focus); focus != "" {
		t.Errorf("after Escape the focus is at %q", focus)
	}
	b.do(chromedp.KeyEvent("/"), chromedp.KeyEvent(" Ada <ada@Shop.acme.example> "+kb.Enter))
	b.sees("shop.acme.example leads to the project acme, by its own record")
}

// On a phone, without a script, the menu leads to each page and shows which one it is.
func TestConsoleMenu(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	b.do(emulation.SetScriptExecutionDisabled(true))
	defer b.do(emulation.SetScriptExecutionDisabled(false))
	b.size(360, false)
	for _, page := range []string{"Projects", "Mail", "Changes", "Problems", "Live", "Keys", "Look-up", "Now"} {
		b.do(chromedp.Click("details.menu > summary", chromedp.ByQuery),
			chromedp.Click(fmt.Sprintf(`//details[@class="menu"]//a[starts-with(., %q)]`, page), chromedp.BySearch),
			chromedp.WaitReady(fmt.Sprintf(`//details[@class="menu"]//a[@aria-current="page" and starts-with(., %q)]`, page), chromedp.BySearch))
	}
	b.do(chromedp.Click("details.menu > summary", chromedp.ByQuery), chromedp.Click(".who a", chromedp.ByQuery))
	b.sees("Who is signed in")
	b.open("/console/nothing")
	b.sees("Not found", "What now?")
	b.fill("domain", "HTTPS://shop.acme.example:443/")
	b.press("Look up")
	b.sees("shop.acme.example leads to the project acme")
}

// A look-up that finds nothing shows what is near, and a person who may adds the domain from there. Without a script.
func TestConsoleLookUpMiss(t *testing.T) {
	v := newVisit(t)
	v.put("apart.hcl", "project \"apart\" {\n  name = \"Apart\"\n  domain \"storefront.apart.example\" {}\n}\n")
	b := v.signedIn(v.admin)
	if err := poll(testrig.Patience, func() error {
		b.open("/console/lookup?domain=storefornt.apart.example%3A443")
		if !strings.Contains(b.text("main"), "Did you mean") {
			return fmt.Errorf("nothing is near")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b.do(emulation.SetScriptExecutionDisabled(true))
	defer b.do(emulation.SetScriptExecutionDisabled(false))
	b.open("/console/lookup?domain=storefornt.apart.example%3A443")
	b.sees("No project has this domain.", "Looked up: storefornt.apart.example", "storefront.apart.example", "Search the projects for “apart”")
	b.fill("to", "acme")
	b.press("Find")
	b.press("Add it here")
	var domain string
	if b.eval(`document.querySelector("main [name=domain]").value`, &domain); domain != "storefornt.apart.example" {
		t.Errorf("the form has the domain %q", domain)
	}
	b.press("Show the change")
	b.sees(`+ domain "storefornt.apart.example"`)
	b = v.signedIn(v.shopOnly)
	b.open("/console/lookup?domain=storefornt.apart.example")
	b.sees("No project has this domain.")
	if text := b.text("main"); strings.Contains(text, "storefront.apart.example") || strings.Contains(text, "to a project") {
		t.Errorf("a key of acme that may only read sees\n%s", text)
	}
}

// A change is shown before it is saved, as the lines of the file that change.
func TestConsoleEdit(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	before := v.text("acme.hcl")
	b.open("/console/edit?kind=project&project=" + v.acme)
	b.fill("name", "Acme & Sons")
	b.press("Show the change")
	b.sees(`- name = "Acme Shop" # as customers know it`, `+ name = "Acme & Sons" # as customers know it`)
	if v.text("acme.hcl") != before {
		t.Fatal("the file has changed before the save")
	}
	b.press("Save")
	b.sees("Saved into the file, and live.", "Ada Lovelace renamed Acme Shop to Acme & Sons")
	if now := v.text("acme.hcl"); now != strings.Replace(before, `"Acme Shop"`, `"Acme & Sons"`, 1) {
		t.Errorf("the file is now\n%s", now)
	}
	b.open("/console/edit?kind=project&project=" + v.acme)
	b.fill("name", " ", "slug", "UPPER")
	b.press("Show the change")
	b.sees("is required and must not be blank", "may hold lower-case letters") // both at once
}

// A person who saves over a change made by hand is shown that change first.
func TestConsoleConflict(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	byHand := func(old, new string) {
		t.Helper()
		generation := v.generation()
		v.put("acme.hcl", strings.Replace(v.text("acme.hcl"), old, new, 1))
		v.waitGeneration(generation + 1)
	}
	// Before the diff.
	b.open("/console/edit?kind=project&project=" + v.acme)
	b.fill("name", "Mine")
	byHand("Acme Shop", "Theirs")
	b.press("Show the change")
	b.sees("Somebody has changed this meanwhile", "Theirs", "Mine")
	b.press("Show the change")
	b.sees(`- name = "Theirs"`, `+ name = "Mine"`)
	// Between the diff and the save.
	byHand("Storefront and back office", "By hand")
	b.press("Save")
	b.sees("Somebody has changed this meanwhile", "By hand")
	b.fill("description", "By hand")
	b.press("Show the change")
	b.press("Save")
	b.sees("Saved into the file")
	if now := v.text("acme.hcl"); !strings.Contains(now, `"By hand"`) || !strings.Contains(now, `"Mine" # as customers know it`) {
		t.Errorf("the file is now\n%s", now)
	}
}

// Every kind is made, changed and deleted by forms alone, without JavaScript.
func TestConsoleWrites(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	// Without JavaScript: forms are enough.
	b.do(emulation.SetScriptExecutionDisabled(true))
	defer b.do(emulation.SetScriptExecutionDisabled(false))
	save := func(in string, diff ...string) {
		t.Helper()
		b.press("Show the change")
		b.sees(diff...)
		before := v.text(in)
		if b.press("Save"); v.text(in) == before {
			t.Errorf("%s has not changed", in)
		}
		b.sees("Saved into the file, and live.")
	}
	remove := func(path, in, gone string) {
		t.Helper()
		b.open(path + "&delete=1")
		b.press("Show the change")
		b.press("Delete")
		b.sees("Saved into the file, and live.")
		if strings.Contains(v.text(in), gone) {
			t.Errorf("%s is still in %s", gone, in)
		}
	}
	id := func(path, name, value string) string {
		t.Helper()
		return v.rowID(v.admin, path, name, value)
	}
	form := "/console/edit?project=" + v.acme + "&kind="
	b.open(form + "domain")
	b.fill("domain", "new.acme.example")
	save("acme.hcl", `+ domain "new.acme.example"`)
	domain := id("/api/platform/projects/"+v.acme+"/domains", "domain", "new.acme.example")
	b.open(form + "domain&id=" + domain)
	b.choose("active", "no")
	save("acme.hcl", "active = false")
	remove(form+"domain&id="+domain, "acme.hcl", "new.acme.example")
	b.open(form + "service-settings")
	b.choose("smsEnabled", "yes")
	save("acme.hcl", "sms_enabled = true")
	b.open(form + "auth-settings")
	b.choose("registrationMode", "INVITE_ONLY")
	save("acme.hcl", `registration_mode = "INVITE_ONLY"`)
	b.open(form + "smtp-config")
	b.fill("fromName", "The Shop")
	save("acme.hcl", `from_name = "The Shop"`)
	b.open(form + "template")
	b.fill("code", "BYE", "name", "Bye", "subjectTemplate", "Bye {{userName}}", "bodyText", "So long.")
	save("acme.hcl", `+ template "BYE"`)
	bye := id("/api/mail/projects/"+v.acme+"/templates?limit=100", "code", "BYE")
	b.open(form + "template&id=" + bye)
	b.fill("bodyText", "Farewell.")
	save("acme.hcl", "+ body_text", "Farewell.")
	remove(form+"template&id="+bye, "acme.hcl", "BYE")
	remove(form+"smtp-config", "acme.hcl", "smtp_config")
	b.open(form + "smtp-config")
	b.fill("host", "127.0.0.1", "port", fmt.Sprint(v.post.Port()), "fromEmail", "hello@acme.example")
	b.choose("tlsEnabled", "no")
	save("acme.hcl", "+ smtp_config {")

	b.open("/console/edit?kind=project")
	b.fill("name", "Brand New", "slug", "brand-new", "labels", "plan=silver")
	b.press("Show the change")
	b.sees(`+project "brand-new" {`, `plan = "silver"`)
	b.press("Save")
	b.sees("Brand New", "draft")
	fresh := v.projectID("brand-new")
	remove("/console/edit?kind=project&project="+fresh, "acme.hcl", "brand-new")
	if _, err := os.Stat(v.path("brand-new.hcl")); err == nil {
		t.Error("the file of the deleted project is still there")
	}
}

// A key's text is shown once; it works until the key is revoked.
func TestConsoleKeys(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	b.open("/console/edit?kind=key")
	b.fill("name", "console-made")
	b.do(chromedp.Click("#f-allow-read", chromedp.ByQuery))
	b.press("Show the change")
	b.sees(`+key "console-made" {`)
	b.press("Save")
	made := b.text("#new-key")
	if got := v.ask(http.MethodGet, "/api/platform/projects", made, ""); got.status != http.StatusOK {
		t.Errorf("with the new key: %d %s", got.status, got.body)
	}
	b.open("/console/keys")
	if text := b.text("body"); strings.Contains(text, made) {
		t.Error("the key is shown twice")
	}
	b.do(chromedp.Click(`button[aria-label="Rotate console-made"]`, chromedp.ByQuery))
	b.sees("Rotate key console-made (the old one stays good for 24 hours): what it changes")
	b.press("Save")
	rotated := b.text("#new-key")
	if got := v.ask(http.MethodGet, "/api/platform/projects", rotated, ""); rotated == made || got.status != http.StatusOK {
		t.Errorf("with the rotated key: %d %s", got.status, got.body)
	}
	b.do(chromedp.Click(`button[aria-label="Revoke console-made"]`, chromedp.ByQuery))
	b.sees("Revoke key console-made: what it changes")
	b.press("Delete")
	if got := v.ask(http.MethodGet, "/api/platform/projects", rotated, ""); got.status != http.StatusUnauthorized {
		t.Errorf("with the revoked key: %d", got.status)
	}
}

// A template is rendered and sent, and an SMTP config tested.
func TestConsoleMail(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	template := v.rowID(v.admin, "/api/mail/projects/"+v.acme+"/templates?limit=100", "code", "WELCOME")
	b.open("/console/template?project=" + v.acme + "&id=" + template)
	b.sees("Missing variables: userName", "Samples stand in for userName (Ada Lovelace)", "Welcome, Ada Lovelace", "360 px, dark")
	var dark string
	b.do(chromedp.Evaluate(`fetch(document.querySelector("iframe[title*=dark]").src).then(r => r.text())`, &dark, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if !strings.Contains(dark, "color-scheme: dark") {
		t.Errorf("the dark frame is %q", dark)
	}
	b.open("/console/edit?kind=template&project=" + v.acme + "&id=" + template)
	b.do(chromedp.WaitReady("#preview iframe", chromedp.ByQuery)) // it comes by itself, next to the fields
	b.sees("Welcome, Ada Lovelace")
	b.open("/console/template?project=" + v.acme + "&id=" + template)
	b.fill("var.userName", "<b>Grace</b>")
	b.press("Render")
	b.sees("Welcome, <b>Grace</b>")
	b.fill("toEmail", "grace@example.com")
	b.press("Send")
	b.sees("The server took the mail after")
	b.open("/console/mail?project=" + v.acme)
	b.sees("grace@example.com", "sent")
	b.press("grace@example.com")
	b.sees("WELCOME", "Message-ID")
	b.open("/console/smtp-test?project=" + v.acme)
	b.fill("toEmail", "ops@example.com")
	b.do(chromedp.Click(`//button[.="Test"]`, chromedp.BySearch))
	b.sees("The server took the mail.", "dns", "connect", "send")
	b.fill("port", "1") // the form has stayed
	b.do(chromedp.Click(`//button[.="Test"]`, chromedp.BySearch))
	b.sees("SMTP_")
	b.open("/console/edit?kind=template&project=" + v.acme + "&id=" + template)
	b.do(chromedp.SendKeys(`[name=subjectTemplate]`, kb.End+" again", chromedp.ByQuery), chromedp.Click(`//button[.="Preview"]`, chromedp.BySearch))
	b.sees("Welcome, Ada Lovelace again")
}

// No script of a name or a template runs, and no request leaves the console.
func TestConsoleHostile(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	hostile := v.rowID(v.admin, "/api/mail/projects/"+v.worst+"/templates?limit=100", "code", "HOSTILE")
	for _, path := range []string{"/console/projects", "/console/projects/" + v.worst, "/console/lookup?domain=" + strings.Repeat(strings.Repeat("a", 63)+".", 3) + strings.Repeat("b", 53) + ".example", "/console/edit?kind=project&project=" + v.worst,
		"/console/changes", "/console/template?project=" + v.worst + "&id=" + hostile, "/console/mail?project=" + v.worst} {
		b.open(path)
		var pwned bool
		b.eval("window.pwned === 1", &pwned)
		if pwned || len(b.said) > 0 {
			t.Errorf("%s: a script of a name ran, or was tried: %q", path, b.said)
		}
	}
	b.open("/console/template?project=" + v.worst + "&id=" + hostile)
	b.sees("Source of the HTML part")
	// A click on the way out must not lead out.
	b.do(chromedp.Evaluate(`new Promise(done => { const f = document.querySelector("iframe"); f.contentDocument ? done("open") : done("closed") })`, nil))
	var inside string
	b.eval(`(() => { try { return String(document.querySelector("iframe").contentWindow.document.cookie) } catch (e) { return e.name } })()`, &inside)
	if inside != "SecurityError" {
		t.Errorf("the page and the frame see each other: %q", inside)
	}
	// The policy holds what gets in nevertheless.
	var ran bool
	b.eval(`(() => { const s = document.createElement("script"); s.textContent = "window.pwned = 1"; document.body.append(s);
		document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.pwned = 1'>"); return window.pwned === 1 })()`, &ran)
	if ran {
		t.Error("an inline script ran")
	}
	b.eval(`new Promise(done => { const i = new Image(); i.onload = i.onerror = () => done(window.pwned === 1); i.src = "`+v.trap.URL+`/policy" })`, &ran)
	if n := v.trapped.Load(); n > 0 || ran {
		t.Errorf("%d requests left the console", n)
	}
	if at := b.at(); !strings.HasPrefix(at, "/console/template") {
		t.Errorf("the page is now %s", at)
	}
}

// A form on another site does nothing.
func TestConsoleForeignForms(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<main><form method="post" action="%s/console/keys/read"><input name="do" value="revoke"><button>Win a prize</button></form></main>`, v.url)
	}))
	defer evil.Close()
	b.do(chromedp.Navigate(evil.URL))
	b.press("Win a prize")
	b.sees("This form was sent by another site. Nothing was done.")
}

// A key sees and is offered what it may.
func TestConsolePermissions(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.shopOnly)
	b.open("/console/projects")
	if rows := b.text("main table"); !strings.Contains(rows, "acme") || strings.Contains(rows, "other") {
		t.Errorf("a key of acme sees\n%s", rows)
	}
	for path, want := range map[string]string{
		"/console/projects/" + v.projectID("other"):        "Not allowed",
		"/console/lookup?domain=other.example":             "belongs to a project that your key does not cover",
		"/console/keys":                                    "Your key may not list keys",
		"/console/problems":                                "shown to keys that cover every project",
		"/console/live":                                    "shown to keys that cover every project",
		"/console/mail?project=" + v.projectID("other"):    "Not allowed",
		"/console/changes?project=" + v.projectID("other"): "not",
	} {
		b.open(path)
		b.sees(want)
	}
	b.open("/console/projects/" + v.acme)
	if text := b.text("main"); strings.Contains(text, "Edit") {
		t.Errorf("a key that may only read is offered to edit:\n%s", text)
	}
	b.open("/console/edit?kind=project&project=" + v.acme)
	b.sees("This change requires write.")
}

// The page of live events shows them, and ends with its key.
func TestConsoleLive(t *testing.T) {
	v := newVisit(t)
	text, id := catalog.NewKeyText()
	file := fmt.Sprintf("key \"leaver\" {\n  id = %q\n  hash = %q\n  allow = [\"read\"]\n}\n", id, catalog.HashKeyText(text))
	v.put("key-leaver.hcl", file)
	if err := poll(testrig.Patience, func() error {
		if got := v.ask(http.MethodGet, "/api/platform/projects", text, ""); got.status != http.StatusOK {
			return fmt.Errorf("%d", got.status)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b := v.tab()
	b.signIn(text)
	b.open("/console/live")
	b.sees("resolves a second")
	generation := b.text("#figures")
	v.put("acme.hcl", strings.Replace(v.text("acme.hcl"), "Storefront", "Live", 1))
	b.sees("project.changed")
	if now := b.text("#figures"); now == generation {
		if err := poll(testrig.Patience, func() error {
			if b.text("#figures") == generation {
				return fmt.Errorf("the figures stand still: %s", generation)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(v.path("key-leaver.hcl")); err != nil {
		t.Fatal(err)
	}
	b.sees("Your key was revoked") // the stream ends, and the page goes with it
}

// A broken file and a held reload are shown, and the reload is applied after a second word.
func TestConsoleProblems(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	good := v.text("acme.hcl")
	v.put("acme.hcl", strings.Replace(good, `status      = "ACTIVE"`, `status      = "ACTIV"`, 1))
	if err := poll(testrig.Patience, func() error {
		b.open("/console/problems")
		if !strings.Contains(b.text("main"), "acme.hcl:5") {
			return fmt.Errorf("no problem yet")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	b.sees("their last good content is served meanwhile", "ACTIV")
	v.put("acme.hcl", good)
	many := ""
	for i := range 12 {
		many += fmt.Sprintf("project \"many-%d\" {\n  name = \"Many\"\n}\n", i)
	}
	generation := v.generation()
	v.put("many.hcl", many)
	v.waitGeneration(generation + 1)
	if err := os.Remove(v.path("many.hcl")); err != nil {
		t.Fatal(err)
	}
	if err := poll(testrig.Patience, func() error {
		b.open("/console/problems")
		if !strings.Contains(b.text("main"), "A reload is held back") {
			return fmt.Errorf("nothing is held back yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b.sees("12 projects", "many.hcl: project many-0", "many.hcl: project many-11")
	b.press("Apply the reload")
	b.sees("Type the word remove to confirm. Nothing was done.")
	b.fill("word", "remove")
	b.press("Apply the reload")
	b.sees("The reload was applied.")
	b.open("/console/changes?action=brake.confirm")
	b.sees("Ada Lovelace let a reload through that was held back, with")
	if got := v.get("/api/platform/projects/by-slug/many-0"); got.status != http.StatusNotFound {
		t.Errorf("after the confirmation: %d", got.status)
	}
}

// TestConsolePictures asks axe about every page in both schemes, looks that nothing is wider than a phone, and keeps a
// picture of each page where FINGERPOST_PICTURES says.
func TestConsolePictures(t *testing.T) {
	v := newVisit(t)
	b := v.tab()
	pages := []struct{ name, path string }{
		{"sign-in", "/console/sign-in"},
		{"look-up", "/console/lookup?domain=www.acme.example"},
		{"now", "/console/"},
		{"empty", "/console/lookup"},
		{"projects", "/console/projects"},
		{"project", "/console/projects/" + v.acme},
		{"long-names", "/console/projects/" + v.worst},
		{"edit", "/console/edit?kind=project&project=" + v.acme},
		{"diff", ""},
		{"mail", "/console/mail?project=" + v.acme},
		{"template", "/console/template?project=" + v.acme + "&id=" + v.rowID(v.admin, "/api/mail/projects/"+v.acme+"/templates?limit=100", "code", "WELCOME")},
		{"smtp-test", "/console/smtp-test?project=" + v.acme},
		{"changes", "/console/changes"},
		{"live", "/console/live"},
		{"keys", "/console/keys"},
		{"sessions", "/console/sessions"},
		{"error", "/console/projects/1"},
		{"needs", "/console/"}, // from here on, a file is broken
		{"problems", "/console/problems"},
	}
	for i := range 40 { // for the figures, the log and the list of changes
		v.ask(http.MethodGet, fmt.Sprintf("/api/platform/projects/resolve?domain=shop%d.acme.example", i%4), v.admin, "")
	}
	v.ask(http.MethodPost, "/api/mail/send/raw", v.admin, `{"domain":"shop.acme.example","toEmail":"grace@example.com",`+
		`"subject":"Your order","bodyText":"It is on its way."}`,
		"X-Internal-Service-Token: "+v.admin, "X-Internal-Service-Name: shop", "Content-Type: application/json")
	dir := os.Getenv("FINGERPOST_PICTURES")
	for i, p := range pages {
		if i == 1 {
			b.signIn(v.admin)
		}
		b.size(1280, false)
		if p.name == "needs" {
			v.put("acme.hcl", strings.Replace(v.text("acme.hcl"), `status      = "ACTIVE"`, `status      = "ACTIV"`, 1))
			if err := poll(testrig.Patience, func() error {
				b.open(p.path)
				if !strings.Contains(b.text("main"), "Needs a person") {
					return fmt.Errorf("nothing needs a person yet")
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if p.name == "diff" {
			b.open("/console/edit?kind=domain&project=" + v.acme)
			b.fill("domain", "brand-new.acme.example")
			b.press("Show the change")
		} else {
			b.open(p.path)
		}
		for _, dark := range []bool{false, true} {
			for _, width := range []int64{360, 768, 1280} {
				b.size(width, dark)
				var wide int64
				b.eval("document.documentElement.scrollWidth", &wide)
				if wide > width {
					t.Errorf("%s is %d px wide in a window of %d", p.name, wide, width)
				}
				var lines int64
				if b.eval(`document.querySelector("header.top").offsetHeight`, &lines); lines > 60 {
					t.Errorf("%s, %d px: the header is %d px high, which is more than a line", p.name, width, lines)
				}
				if judged := testrig.Size(t, true, dark == (width == 1280) && width != 768); judged {
					for _, finding := range b.axe() {
						t.Errorf("%s, %d px, dark %v: axe: %s", p.name, width, dark, finding)
					}
				}
				if dir != "" {
					var picture []byte
					b.do(chromedp.FullScreenshot(&picture, 100))
					picture = fewColours(t, picture)
					name := fmt.Sprintf("%s-%d", p.name, width)
					if dark {
						name += "-dark"
					}
					if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}
