package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// consoleFiles are a project with everything, one with the worst names, and a key for all of it.
func consoleFiles(smtpPort string) (files map[string]string, admin, shopOnly string) {
	admin, id := catalog.NewKeyText()
	shopOnly, shopID := catalog.NewKeyText()
	key := func(name, id, text, rights string) string {
		return fmt.Sprintf("key %q {\n  id = %q\n  hash = %q\n  %s\n}\n", name, id, catalog.HashKeyText(text), rights)
	}
	long := strings.Repeat("a", 63)
	return map[string]string{
		"acme.hcl": `# The shop.
project "acme" {
  name        = "Acme Shop" # as customers know it
  description = "Storefront and back office"
  status      = "ACTIVE"
  labels      = { plan = "gold" }

  domain "shop.acme.example" { primary = true }
  domain "*.acme.example" {}
  domain "old.acme.example" { active = false }

  service_settings { mail_enabled = true }
  auth_settings { jwt_secret = env("STORY_SECRET") }

  smtp_config {
    host       = "127.0.0.1"
    port       = ` + smtpPort + `
    from_email = "hello@acme.example"
  }

  template "WELCOME" {
    name             = "Welcome"
    subject_template = "Welcome, {{userName}}"
    body_html        = "<p style=\"color: green\">Hello {{userName}}</p>"
  }
}
`,
		"worst.hcl": `project "` + long + `" {
  name        = "<script>window.pwned = 1</script> \u202egnp.exe\u200b & a name that goes on and on without an end in sight"
  description = "<img src=x onerror='window.pwned = 1'>"
  domain "` + long + `.` + long + `.` + long + `.` + strings.Repeat("b", 53) + `.example" {}
  template "HOSTILE" {
    name             = "Hostile"
    subject_template = "</title><script>window.pwned = 1</script>"
    body_html        = "<img src=\"http://TRAP/image\"><link rel=stylesheet href=\"http://TRAP/style\"><script>window.parent.pwned = 1; document.location = 'http://TRAP/script'</script><iframe src=\"http://TRAP/frame\"></iframe><a href=\"http://TRAP/link\" target=\"_top\">way out</a><form action=\"http://TRAP/form\" method=\"post\"><input type=\"submit\"></form>"
  }
}
`,
		"key-admin.hcl": key("admin", id, admin, `allow = ["resolve", "read", "write", "mail", "secrets"]`),
		"key-shop.hcl":  key("shop", shopID, shopOnly, "allow = [\"read\"]\n  projects = [\"acme\"]"),
	}, admin, shopOnly
}

// TestConsole walks through the console in a browser, over the real binary.
func TestConsole(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a browser, which -short leaves out")
	}
	if !testrig.Compulsory("chromium") && os.Getenv("FINGERPOST_PICTURES") == "" {
		t.Skip("takes a minute and chromium: FINGERPOST_NEED=chromium or FINGERPOST_PICTURES=FOLDER runs it")
	}
	browser := findBrowser(t)
	var trapped atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { trapped.Add(1) }))
	t.Cleanup(trap.Close)
	var post sink
	if err := post.up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(post.down)
	files, admin, shopOnly := consoleFiles(post.port())
	files["worst.hcl"] = strings.ReplaceAll(files["worst.hcl"], "http://TRAP", trap.URL)
	r := idleRig(t, t.TempDir(), files)
	r.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	r.start()
	acme := r.projectID("acme")
	worst := r.projectID(strings.Repeat("a", 63))
	b := newTab(t, browser, r.url)
	was := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(r.path(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	story := func(name string, f func(t *testing.T)) {
		if !t.Run(name, f) {
			t.FailNow() // the next ones build on it
		}
	}
	story("sign-in", func(t *testing.T) {
		b := newTab(t, browser, r.url)
		b.open("/console/projects")
		if at := b.at(); !strings.HasPrefix(at, "/console/sign-in") {
			t.Fatalf("without a session: %s", at)
		}
		b.fill("key", r.keys["ghost"])
		b.press("Sign in")
		b.sees("This key is not known here")
		b.fill("key", r.keys["resolve"])
		b.press("Sign in")
		b.sees("This key may not read")
		b.fill("key", admin, "name", "Ada")
		b.press("Sign in")
		b.sees("Give both your name and your mail address")
		b.fill("key", admin, "name", "Ada Lovelace", "email", "ada@example.com")
		b.press("Sign in")
		if at := b.at(); at != "/console/projects" {
			t.Errorf("after signing in: %s, which is not the page that was asked for", at)
		}
		var cookie string
		b.eval("document.cookie", &cookie)
		if cookie != "" {
			t.Errorf("a script sees the cookie %q", cookie)
		}
		b.do(chromedp.Click(".who button", chromedp.ByQuery), chromedp.WaitReady("#key", chromedp.ByQuery))
		b.sees("You are signed out.")
		b.open("/console/")
		if at := b.at(); !strings.HasPrefix(at, "/console/sign-in") {
			t.Errorf("after signing out: %s", at)
		}
	})

	b.signIn(admin)
	story("look-up", func(t *testing.T) {
		b.t = t
		b.open("/console/")
		b.do(chromedp.SendKeys("#domain", "x.y.acme.example", chromedp.ByQuery))
		b.sees("leads to the project acme, by the wildcard *.acme.example", "acme.hcl:3", "built in", "Answer, form=flat")
		if at := b.at(); at != "/console/?domain=x.y.acme.example" {
			t.Errorf("the link to share is %s", at)
		}
		b.open("/console/?domain=shop.acme.example")
		b.sees("by its own record", "would match next", "The answer was")
		b.open("/console/?domain=old.acme.example")
		b.sees("The domain's record is inactive.")
		b.open("/console/?domain=nowhere.example")
		b.sees("No project has this domain.")
	})

	story("edit", func(t *testing.T) {
		b.t = t
		before := was("acme.hcl")
		b.open("/console/edit?kind=project&project=" + acme)
		b.fill("name", "Acme & Sons")
		b.press("Show the change")
		b.sees(`- name = "Acme Shop" # as customers know it`, `+ name = "Acme & Sons" # as customers know it`)
		if was("acme.hcl") != before {
			t.Fatal("the file has changed before the save")
		}
		b.press("Save")
		b.sees("Saved into the file, and live.", "Acme & Sons", "Ada Lovelace <ada@example.com>")
		if now := was("acme.hcl"); now != strings.Replace(before, `"Acme Shop"`, `"Acme & Sons"`, 1) {
			t.Errorf("the file is now\n%s", now)
		}
		b.open("/console/edit?kind=project&project=" + acme)
		b.fill("name", " ", "slug", "UPPER")
		b.press("Show the change")
		b.sees("is required and must not be blank", "may hold lower-case letters") // both at once
	})

	story("conflict", func(t *testing.T) {
		b.t = t
		byHand := func(old, new string) {
			t.Helper()
			generation := r.generation()
			r.put("acme.hcl", strings.Replace(was("acme.hcl"), old, new, 1))
			r.waitGeneration(generation + 1)
		}
		// Before the diff.
		b.open("/console/edit?kind=project&project=" + acme)
		b.fill("name", "Mine")
		byHand("Acme & Sons", "Theirs")
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
		if now := was("acme.hcl"); !strings.Contains(now, `"By hand"`) || !strings.Contains(now, `"Mine" # as customers know it`) {
			t.Errorf("the file is now\n%s", now)
		}
	})

	story("every write", func(t *testing.T) {
		b.t = t
		// Without JavaScript: forms are enough.
		b.do(emulation.SetScriptExecutionDisabled(true))
		defer b.do(emulation.SetScriptExecutionDisabled(false))
		save := func(in string, diff ...string) {
			t.Helper()
			b.press("Show the change")
			b.sees(diff...)
			before := was(in)
			if b.press("Save"); was(in) == before {
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
			if strings.Contains(was(in), gone) {
				t.Errorf("%s is still in %s", gone, in)
			}
		}
		id := func(path, name, value string) string {
			t.Helper()
			return r.rowID(admin, path, name, value)
		}
		form := "/console/edit?project=" + acme + "&kind="
		b.open(form + "domain")
		b.fill("domain", "new.acme.example")
		save("acme.hcl", `+ domain "new.acme.example"`)
		domain := id("/api/platform/projects/"+acme+"/domains", "domain", "new.acme.example")
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
		bye := id("/api/mail/projects/"+acme+"/templates?limit=100", "code", "BYE")
		b.open(form + "template&id=" + bye)
		b.fill("bodyText", "Farewell.")
		save("acme.hcl", "+ body_text", "Farewell.")
		remove(form+"template&id="+bye, "acme.hcl", "BYE")
		remove(form+"smtp-config", "acme.hcl", "smtp_config")
		b.open(form + "smtp-config")
		b.fill("host", "127.0.0.1", "port", post.port(), "fromEmail", "hello@acme.example")
		b.choose("tlsEnabled", "no")
		save("acme.hcl", "+ smtp_config {")

		b.open("/console/edit?kind=project")
		b.fill("name", "Brand New", "slug", "brand-new", "labels", "plan=silver")
		b.press("Show the change")
		b.sees(`+project "brand-new" {`, `plan = "silver"`)
		b.press("Save")
		b.sees("Brand New", "draft")
		fresh := r.projectID("brand-new")
		remove("/console/edit?kind=project&project="+fresh, "acme.hcl", "brand-new")
		if _, err := os.Stat(r.path("brand-new.hcl")); err == nil {
			t.Error("the file of the deleted project is still there")
		}

		b.open("/console/edit?kind=key")
		b.fill("name", "console-made")
		b.do(chromedp.Click("#f-allow-read", chromedp.ByQuery))
		b.press("Show the change")
		b.sees(`+key "console-made" {`)
		b.press("Save")
		made := b.text("#new-key")
		if got := r.ask(http.MethodGet, "/api/platform/projects", made, ""); got.status != http.StatusOK {
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
		if got := r.ask(http.MethodGet, "/api/platform/projects", rotated, ""); rotated == made || got.status != http.StatusOK {
			t.Errorf("with the rotated key: %d %s", got.status, got.body)
		}
		b.do(chromedp.Click(`button[aria-label="Revoke console-made"]`, chromedp.ByQuery))
		b.sees("Revoke key console-made: what it changes")
		b.press("Delete")
		if got := r.ask(http.MethodGet, "/api/platform/projects", rotated, ""); got.status != http.StatusUnauthorized {
			t.Errorf("with the revoked key: %d", got.status)
		}
	})

	story("mail", func(t *testing.T) {
		b.t = t
		template := r.rowID(admin, "/api/mail/projects/"+acme+"/templates?limit=100", "code", "WELCOME")
		b.open("/console/template?project=" + acme + "&id=" + template)
		b.sees("Missing variables: userName")
		b.fill("var.userName", "<b>Grace</b>")
		b.press("Render")
		b.sees("Welcome, <b>Grace</b>")
		b.fill("toEmail", "grace@example.com")
		b.press("Send")
		b.sees("The server took the mail after")
		b.open("/console/mail?project=" + acme)
		b.sees("grace@example.com", "sent")
		b.press("grace@example.com")
		b.sees("WELCOME", "Message-ID")
		b.open("/console/smtp-test?project=" + acme)
		b.fill("toEmail", "ops@example.com")
		b.do(chromedp.Click(`//button[.="Test"]`, chromedp.BySearch))
		b.sees("The server took the mail.", "dns", "connect", "send")
		b.fill("port", "1") // the form has stayed
		b.do(chromedp.Click(`//button[.="Test"]`, chromedp.BySearch))
		b.sees("SMTP_")
		b.open("/console/edit?kind=template&project=" + acme + "&id=" + template)
		b.do(chromedp.SendKeys(`[name=subjectTemplate]`, kb.End+" again", chromedp.ByQuery), chromedp.Click(`//button[.="Preview"]`, chromedp.BySearch))
		b.sees("Welcome, {{userName}} again")
	})

	story("hostile names and templates", func(t *testing.T) {
		b := newTab(t, browser, r.url)
		b.signIn(admin)
		hostile := r.rowID(admin, "/api/mail/projects/"+worst+"/templates?limit=100", "code", "HOSTILE")
		for _, path := range []string{"/console/projects", "/console/projects/" + worst, "/console/?domain=" + strings.Repeat(strings.Repeat("a", 63)+".", 3) + strings.Repeat("b", 53) + ".example", "/console/edit?kind=project&project=" + worst,
			"/console/changes", "/console/template?project=" + worst + "&id=" + hostile, "/console/mail?project=" + worst} {
			b.open(path)
			var pwned bool
			b.eval("window.pwned === 1", &pwned)
			if pwned || len(b.said) > 0 {
				t.Errorf("%s: a script of a name ran, or was tried: %q", path, b.said)
			}
		}
		b.open("/console/template?project=" + worst + "&id=" + hostile)
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
		b.eval(`new Promise(done => { const i = new Image(); i.onload = i.onerror = () => done(window.pwned === 1); i.src = "`+trap.URL+`/policy" })`, &ran)
		if n := trapped.Load(); n > 0 || ran {
			t.Errorf("%d requests left the console", n)
		}
		if at := b.at(); !strings.HasPrefix(at, "/console/template") {
			t.Errorf("the page is now %s", at)
		}
	})

	story("forms of other sites", func(t *testing.T) {
		b := newTab(t, browser, r.url)
		b.signIn(admin)
		evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<main><form method="post" action="%s/console/keys/read"><input name="do" value="revoke"><button>Win a prize</button></form></main>`, r.url)
		}))
		defer evil.Close()
		b.do(chromedp.Navigate(evil.URL))
		b.press("Win a prize")
		b.sees("This form was sent by another site. Nothing was done.")
	})

	story("permissions", func(t *testing.T) {
		b := newTab(t, browser, r.url)
		b.signIn(shopOnly)
		b.open("/console/projects")
		if rows := b.text("main table"); !strings.Contains(rows, "acme") || strings.Contains(rows, "other") {
			t.Errorf("a key of acme sees\n%s", rows)
		}
		for path, want := range map[string]string{
			"/console/projects/" + r.projectID("other"):        "Not allowed",
			"/console/?domain=other.example":                   "belongs to a project that your key does not cover",
			"/console/keys":                                    "Your key may not list keys",
			"/console/problems":                                "shown to keys that cover every project",
			"/console/live":                                    "shown to keys that cover every project",
			"/console/mail?project=" + r.projectID("other"):    "Not allowed",
			"/console/changes?project=" + r.projectID("other"): "not",
		} {
			b.open(path)
			b.sees(want)
		}
		b.open("/console/projects/" + acme)
		if text := b.text("main"); strings.Contains(text, "Edit") {
			t.Errorf("a key that may only read is offered to edit:\n%s", text)
		}
		b.open("/console/edit?kind=project&project=" + acme)
		b.sees("Your key does not allow this change")
	})

	story("live, and a key that is revoked", func(t *testing.T) {
		text, id := catalog.NewKeyText()
		file := fmt.Sprintf("key \"leaver\" {\n  id = %q\n  hash = %q\n  allow = [\"read\"]\n}\n", id, catalog.HashKeyText(text))
		r.put("key-leaver.hcl", file)
		if err := poll(testrig.Patience, func() error {
			if got := r.ask(http.MethodGet, "/api/platform/projects", text, ""); got.status != http.StatusOK {
				return fmt.Errorf("%d", got.status)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		b := newTab(t, browser, r.url)
		b.signIn(text)
		b.open("/console/live")
		b.sees("resolves a second")
		generation := b.text("#figures")
		r.put("acme.hcl", strings.Replace(was("acme.hcl"), "By hand", "Live", 1))
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
		if err := os.Remove(r.path("key-leaver.hcl")); err != nil {
			t.Fatal(err)
		}
		b.sees("Your key was revoked") // the stream ends, and the page goes with it
	})

	story("problems", func(t *testing.T) {
		b.t = t
		good := was("acme.hcl")
		r.put("acme.hcl", strings.Replace(good, `status      = "ACTIVE"`, `status      = "ACTIV"`, 1))
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
		r.put("acme.hcl", good)
		many := ""
		for i := range 12 {
			many += fmt.Sprintf("project \"many-%d\" {\n  name = \"Many\"\n}\n", i)
		}
		generation := r.generation()
		r.put("many.hcl", many)
		r.waitGeneration(generation + 1)
		if err := os.Remove(r.path("many.hcl")); err != nil {
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
		b.sees("Ada Lovelace <ada@example.com> · key admin")
		if got := r.get("/api/platform/projects/by-slug/many-0"); got.status != http.StatusNotFound {
			t.Errorf("after the confirmation: %d", got.status)
		}
	})

	story("pictures", func(t *testing.T) { consolePictures(t, newTab(t, browser, r.url), r, admin, acme, worst) })
}

// consolePictures asks axe about every page in both schemes, looks that nothing is wider than a phone, and keeps a picture
// of each page where FINGERPOST_PICTURES says.
func consolePictures(t *testing.T, b *tab, r *rig, admin, acme, worst string) {
	pages := []struct{ name, path string }{
		{"sign-in", "/console/sign-in"},
		{"look-up", "/console/?domain=www.acme.example"},
		{"empty", "/console/"},
		{"projects", "/console/projects"},
		{"project", "/console/projects/" + acme},
		{"long-names", "/console/projects/" + worst},
		{"edit", "/console/edit?kind=project&project=" + acme},
		{"diff", ""},
		{"problems", "/console/problems"},
		{"mail", "/console/mail?project=" + acme},
		{"template", "/console/template?project=" + acme + "&id=" + r.rowID(admin, "/api/mail/projects/"+acme+"/templates?limit=100", "code", "WELCOME")},
		{"smtp-test", "/console/smtp-test?project=" + acme},
		{"changes", "/console/changes"},
		{"live", "/console/live"},
		{"keys", "/console/keys"},
		{"sessions", "/console/sessions"},
		{"error", "/console/projects/1"},
	}
	dir := os.Getenv("FINGERPOST_PICTURES")
	for i, p := range pages {
		if i == 1 {
			b.signIn(admin)
		}
		b.size(1280, false)
		if p.name == "diff" {
			b.open("/console/edit?kind=domain&project=" + acme)
			b.fill("domain", "brand-new.acme.example")
			b.press("Show the change")
		} else {
			b.open(p.path)
		}
		for _, dark := range []bool{false, true} {
			for _, width := range []int64{360, 800, 1440} {
				b.size(width, dark)
				var wide int64
				b.eval("document.documentElement.scrollWidth", &wide)
				if wide > width {
					t.Errorf("%s is %d px wide in a window of %d", p.name, wide, width)
				}
				if width != 800 {
					for _, finding := range b.axe() {
						t.Errorf("%s, %d px, dark %v: axe: %s", p.name, width, dark, finding)
					}
				}
				if dir != "" {
					var picture []byte
					if width == 800 { // for the README
						b.do(chromedp.CaptureScreenshot(&picture))
					} else {
						b.do(chromedp.FullScreenshot(&picture, 100))
					}
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

// rowID returns the id of the row of a list of the API whose field has the value.
func (r *rig) rowID(key, path, name, value string) string {
	r.t.Helper()
	got := r.ask(http.MethodGet, path, key, "", "X-Internal-Service-Token: "+key, "X-Internal-Service-Name: t")
	var list struct{ Data []map[string]any }
	d := json.NewDecoder(strings.NewReader(got.body))
	d.UseNumber()
	if err := d.Decode(&list); err != nil {
		r.t.Fatalf("%s: %v", got.body, err)
	}
	for _, row := range list.Data {
		if row[name] == value {
			return fmt.Sprint(row["id"])
		}
	}
	r.t.Fatalf("no %s = %q in %s", name, value, got.body)
	return ""
}

// generation returns the generation of the files that are served.
func (r *rig) generation() uint64 {
	r.t.Helper()
	res, err := http.Get(r.ops + "/status")
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	var status struct{ Config struct{ Generation uint64 } }
	if err := json.NewDecoder(res.Body).Decode(&status); err != nil {
		r.t.Fatal(err)
	}
	return status.Config.Generation
}

// waitGeneration waits until that many generations are served.
func (r *rig) waitGeneration(n uint64) {
	r.t.Helper()
	if err := poll(testrig.Patience, func() error {
		if now := r.generation(); now < n {
			return fmt.Errorf("generation %d, want %d", now, n)
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
}
