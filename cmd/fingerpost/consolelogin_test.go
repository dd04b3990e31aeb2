package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"fingerpost/cmd/testrig"
)

// The rules of the login: who of them is in the file changes with the story.
const (
	opsRule     = "  rule {\n    claim = \"groups\"\n    value = \"ops\"\n    allow = [\"read\", \"write\", \"mail\", \"secrets\"]\n  }\n"
	supportRule = "  rule {\n    claim = \"groups\"\n    value = \"support\"\n    allow = [\"read\", \"propose\"]\n  }\n"
	agencyRule  = "  rule {\n    claim    = \"email\"\n    value    = \"*@agency.example\"\n    allow    = [\"read\", \"propose\"]\n" +
		"    projects = [\"acme\"]\n  }\n"
)

// An accountVisit is a visit to a server at which people sign in with their accounts.
type accountVisit struct {
	*visit
	git      *gitRig
	provider *accountProvider
}

func newAccountVisit(t *testing.T) *accountVisit {
	t.Helper()
	t.Parallel()
	testrig.Slow(t)
	if !testrig.Compulsory("chromium") {
		t.Skip("takes a minute and chromium: FINGERPOST_NEED=chromium runs it")
	}
	v := &accountVisit{visit: &visit{test: t, browser: findBrowser(t)}}
	v.provider = newAccountProvider(t, map[string]map[string]any{
		"Ada":  {"sub": "ada", "name": "Ada Lovelace", "email": "ada@acme.example", "email_verified": true, "groups": []string{"ops"}},
		"Sue":  {"sub": "sue|7", "name": "Sue Support", "email": "sue@evil.example", "email_verified": false, "groups": []string{"support", "all"}},
		"Zoe":  {"sub": "zoe", "preferred_username": "zoe", "email": "zoe@agency.example", "email_verified": true},
		"Eve":  {"sub": "eve", "name": "Eve", "email": "eve@evil.example", "groups": []string{"/ops"}},
		"Anna": {"sub": "anna", "name": "Anna", "email": "anna@agency.example", "email_verified": false},
	})
	files, admin, shopOnly := consoleFiles(25)
	v.rig, v.admin, v.shopOnly = idleRig(t, t.TempDir(), files), admin, shopOnly
	v.rules(opsRule, supportRule, agencyRule)
	v.git = newGitRig(t, v.rig)
	at := fmt.Sprintf("127.0.0.1:%d", testrig.FreePort(t))
	v.env = append(v.env, "COMPANY_SECRET="+accountSecret)
	v.flags = []string{"--git", "--git-ack", "commit", "--git-domain", "config.example", "--listen", at, "--public-url", "http://" + at,
		"--login-allow", "127.0.0.0/8"}
	v.start()
	v.acme = v.projectID("acme")
	return v
}

// rules writes the login's file with some rules.
func (v *accountVisit) rules(rules ...string) {
	v.t.Helper()
	v.put("login.hcl", fmt.Sprintf("login \"company\" {\n  issuer        = %q\n  client_id     = \"fingerpost\"\n"+
		"  client_secret = env(\"COMPANY_SECRET\")\n  label         = \"Acme account\"\n\n%s}\n", v.provider.issuer(),
		strings.Join(rules, "\n")))
}

// account opens a page in a browser of its own, which asks for a sign-in, and signs somebody in.
func (v *accountVisit) account(person, page string) *tab {
	v.t.Helper()
	b := v.tab()
	b.open(page)
	b.account(person)
	b.do(chromedp.WaitReady("nav.main", chromedp.ByQuery))
	return b
}

// account goes from the sign-in page to the provider, and says there who it is.
func (b *tab) account(person string) {
	b.t.Helper()
	b.press("Sign in with Acme account")
	b.sees("Who are you?")
	b.press(person)
}

// away waits until the next click of a browser leads to the sign-in page, and returns it.
func (b *tab) away(page string) {
	b.t.Helper()
	err := poll(testrig.Patience, func() error {
		if b.open(page); !strings.HasPrefix(b.at(), "/console/sign-in") {
			return fmt.Errorf("still on %s", b.at())
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// People sign in with their company's account, and may do what the rules of that moment say: ops everything, support to read
// and to propose, an agency to propose for one project, and others see why not. With and without JavaScript.
func TestConsoleAccounts(t *testing.T) {
	v := newAccountVisit(t)
	ada := v.account("Ada", "/console/projects")
	if at := ada.at(); at != "/console/projects" {
		t.Errorf("after signing in: %s, which is not the page that was asked for", at)
	}
	if findings := ada.axe(); len(findings) > 0 {
		t.Errorf("axe: %s", findings)
	}
	ada.open("/console/edit?kind=project&project=" + v.acme)
	ada.fill("name", "Acme Store")
	ada.press("Show the change")
	ada.press("Save")
	ada.sees("Saved as commit")
	if by := strings.TrimSpace(v.git.git(v.dir, "log", "-1", "--format=%an <%ae>")); by != "Ada Lovelace <ada@acme.example>" {
		t.Errorf("the commit is by %s", by)
	}
	trail := v.ask(http.MethodGet, "/api/platform/audit?limit=1", v.admin, "")
	for _, want := range []string{`"door":"console"`, `"actor":"Ada Lovelace <ada@acme.example>"`, `"subject":"` + v.provider.issuer() + `|ada"`} {
		if !strings.Contains(trail.body, want) {
			t.Errorf("the trail lacks %s: %s", want, trail.body)
		}
	}
	ada.open("/console/keys")
	ada.sees("New key")

	sue := v.tab()
	sue.do(emulation.SetScriptExecutionDisabled(true))
	sue.open("/console/projects/acme")
	sue.account("Sue")
	sue.do(chromedp.WaitReady("nav.main", chromedp.ByQuery))
	sue.open("/console/edit?kind=project&project=" + v.acme)
	sue.fill("description", "As Sue has it")
	sue.press("Show the change")
	sue.fill("proposal", "by-sue", "message", "Sue describes it")
	sue.do(emulation.SetScriptExecutionDisabled(false))
	if offered := sue.buttons(); strings.Contains(offered, "Save") || !strings.Contains(offered, "Propose") {
		t.Errorf("Sue is offered %s", offered)
	}
	sue.press("Propose")
	sue.sees("proposed by Sue Support")
	if by := v.git.git(v.dir, "log", "-1", "--format=%an <%ae>", "propose/by-sue"); !strings.HasPrefix(by, "Sue Support <sue-7-") ||
		!strings.Contains(by, "@config.example>") {
		t.Errorf("an address that is not verified: %s", by)
	}

	zoe := v.account("Zoe", "/console/projects")
	zoe.sees("Acme Store")
	if list := zoe.text("main"); strings.Contains(list, "Globex") || strings.Contains(list, "a name that goes on") {
		t.Errorf("the agency sees %s", list)
	}
	v.propose(zoe, "by-zoe", "Acme by Zoe", "The agency's name")
	zoe.sees("The agency's name", "proposed by zoe")
	again := v.account("Zoe", "/console/proposals")
	again.press("The agency's name")
	if offered := again.buttons(); offered != "Work in it, Drop" {
		t.Errorf("in another browser Zoe is offered %s", offered)
	}

	for _, person := range []string{"Eve", "Anna"} {
		b := v.tab()
		b.open("/console/sign-in")
		b.account(person)
		b.sees("You may not sign in here", "The claims that arrived", strings.ToLower(person)+"@", "*@agency.example")
		if findings := b.axe(); len(findings) > 0 {
			t.Errorf("axe: %s", findings)
		}
		b.open("/console/projects")
		if at := b.at(); !strings.HasPrefix(at, "/console/sign-in") {
			t.Errorf("%s is in: %s", person, at)
		}
	}
	if strings.Contains(v.logged(), "evil.example") {
		t.Errorf("the log has values of claims:\n%s", v.logged())
	}

	ada.open("/console/proposals/by-zoe")
	v.rules(opsRule, supportRule)
	zoe.away("/console/projects")
	zoe.sees("The rules of the login do not let you in any more")
	ada.press("Apply")
	ada.sees("may not write any more")
	v.rules(opsRule, supportRule, agencyRule)
	v.account("Zoe", "/console/projects")
	ada.open("/console/proposals/by-zoe")
	ada.press("Apply")
	ada.sees("is applied, and live")

	ada.do(chromedp.Click("details.menu > summary", chromedp.ByQuery), chromedp.Click(".who button", chromedp.ByQuery))
	ada.sees("You are signed out of Acme accounts.")
	ada.open("/console/")
	if at := ada.at(); !strings.HasPrefix(at, "/console/sign-in") {
		t.Errorf("after signing out: %s", at)
	}
}

// A provider that is away keeps nobody out who is in, and no key; with it, people sign in again, without a restart.
func TestConsoleProviderAway(t *testing.T) {
	v := newAccountVisit(t)
	v.halt()
	v.provider.goAway()
	v.start()
	b := v.tab()
	b.open("/console/projects")
	b.press("Sign in with Acme account")
	b.sees("The sign-in did not work")
	b.open("/console/sign-in")
	key := v.signedIn(v.admin)
	key.open("/console/projects")
	key.sees("Acme Shop")

	v.provider.comeBack()
	b.open("/console/projects")
	b.account("Ada")
	b.do(chromedp.WaitReady("nav.main", chromedp.ByQuery))
	v.provider.goAway()
	b.open("/console/projects")
	b.sees("Acme Shop")
	b.open("/console/keys")
	b.sees("New key")
}
