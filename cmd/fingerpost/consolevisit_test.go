package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
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
	v := idleVisit(t)
	v.flags = append(v.flags, flags...)
	v.begin()
	return v
}

// idleVisit is newVisit without the start.
func idleVisit(t *testing.T) *visit {
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
	v.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	return v
}

// begin starts the server.
func (v *visit) begin() {
	v.t.Helper()
	v.start()
	v.acme, v.worst = v.projectID("acme"), v.projectID(strings.Repeat("a", 63))
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

// On a phone, without a script, the menu leads to each page and shows which one it is.
func TestConsoleMenu(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	b.do(emulation.SetScriptExecutionDisabled(true))
	defer b.do(emulation.SetScriptExecutionDisabled(false))
	b.size(360, false)
	for _, page := range []string{"Projects", "Mail", "Changes", "Problems", "Live", "Webhooks", "Keys", "Look-up", "Now"} {
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

// A key's text is shown once; it works until the key is revoked.
func TestConsoleKeys(t *testing.T) {
	v := newVisit(t)
	b := v.signedIn(v.admin)
	b.open("/console/edit?kind=key")
	b.fill("name", "console-made")
	b.do(chromedp.Click("#f-allow-read", chromedp.ByQuery))
	b.do(chromedp.SendKeys("#find-projects", "acme", chromedp.ByQuery), chromedp.Click(`button[data-add][value=acme]`, chromedp.ByQuery))
	if got := b.value("#f-projects"); got != "acme" {
		t.Errorf("the finder makes the projects %q", got)
	}
	b.fill("projects", "")
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
	b.sees("Samples stand in for userName (Ada Lovelace) – a send without it is refused.", "Welcome, Ada Lovelace", "360 px, dark")
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
		"/console/lookup?domain=other.example":             "No project that your key covers has this domain",
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
