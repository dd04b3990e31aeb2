package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// newHookVisit is a visit to a server that may post to this machine, and seals.
func newHookVisit(t *testing.T) *visit {
	t.Helper()
	v := idleVisit(t)
	v.seals()
	v.begin()
	return v
}

// seals gives the server a key to seal with, and lets webhooks lead to this machine.
func (r *rig) seals() {
	r.t.Helper()
	key := filepath.Join(r.dir, "seal.key")
	if out, code := r.run("secrets", "keygen", "--config", "projects.d", "--seal-key", key); code != cli.ExitOK {
		r.t.Fatal(out)
	}
	r.flags = append(r.flags, "--seal-key", key, "--webhook-allow", "127.0.0.0/8")
}

// unfold opens what is folded.
func (b *tab) unfold() {
	b.t.Helper()
	b.eval(`document.querySelectorAll("main details").forEach(d => d.open = true); 0`, nil)
}

// Ada adds a webhook, tests it, sees what was sent, mends a receiver that wanted no more, and sends events again. All of it
// works without a script, too.
func TestConsoleWebhooks(t *testing.T) {
	testrig.Thorough(t)
	v := newHookVisit(t)
	receiver := newHookReceiver(t)
	b := v.signedIn(v.admin)
	b.open("/console/webhooks")
	b.sees("No webhook yet")
	b.press("Add the first")
	b.fill("name", "crm", "url", receiver.url+"/events", "events", "project.*", "projects", "acme")
	b.press("Show the change")
	b.sees(`+webhook "crm" {`, `sealed("`)
	b.press("Save")
	secret := b.text("#new-key")
	b.press("crm")
	if strings.Contains(b.text("body"), "whsec_") {
		t.Error("the secret is shown twice")
	}
	b.press("Send a test")
	b.sees("The receiver took it with 204")
	if got := receiver.all(); len(got) != 1 || !got[0].signedBy(secret) {
		t.Errorf("after a test: %+v", got)
	}

	rename := func(name string) {
		t.Helper()
		got := v.ask(http.MethodPut, "/api/platform/projects/"+v.acme, v.admin, `{"name":"`+name+`"}`)
		if got.status != http.StatusOK {
			t.Fatal(got.body)
		}
	}
	until := func(what string, sees ...string) {
		t.Helper()
		testrig.Eventually(t, what, func() bool {
			b.open("/console/webhooks/crm")
			text := strings.Join(strings.Fields(b.text("main")), " ")
			for _, s := range sees {
				if !strings.Contains(text, s) {
					return false
				}
			}
			return true
		})
	}
	rename("Acme One")
	until("the delivery is there", "project.update", "Delivered", "1 kept")
	b.do(emulation.SetScriptExecutionDisabled(true))
	b.do(chromedp.Click(`a[aria-label="project.update acme, details"]`, chromedp.ByQuery))
	b.sees("The receiver took it with 204", `"type": "project.update"`)
	last := receiver.all()[len(receiver.all())-1]
	var shown string
	b.do(chromedp.TextContent("#sent", &shown, chromedp.ByQuery))
	if shown != last.body {
		t.Errorf("the page shows %s\nsent was %s", shown, last.body)
	}
	b.sees("webhook-id: "+last.id(), "webhook-timestamp: "+last.header.Get("webhook-timestamp"))
	b.press("Send again")
	b.sees("The delivery is sent again.")
	until("it came again", "2 kept")
	b.open("/console/webhooks")
	b.sees("on", "Delivered")
	b.do(emulation.SetScriptExecutionDisabled(false))

	receiver.answers(http.StatusGone)
	rename("Acme Two")
	until("it is off", "It has switched itself off", "410", "switched off")
	if offered := b.buttons(); strings.Contains(offered, "Send again") {
		t.Errorf("a webhook that is off offers %s", offered)
	}
	b.press("Send a test")
	b.sees("not delivered", "The receiver answered 410", "it wants no more events")
	b.unfold()
	b.sees("<b>so</b>")
	receiver.answers(http.StatusNoContent)
	b.press("Resume")
	b.sees("The webhook crm goes on")
	until("it went on", "3 kept", "nothing")
	b.do(chromedp.SetValue("#again-from", "2026-01-31T09:30", chromedp.ByQuery))
	b.do(chromedp.Click(`button[value=replay]`, chromedp.ByQuery))
	b.sees("Sent again: 2 events, one after the other.")
	until("they came again", "5 kept")
	before := len(receiver.all())

	b.unfold()
	b.press("Show the change")
	b.sees("the older ones stay good for 24 hours")
	b.press("Save")
	next := b.text("#new-key")
	b.press("Send a test")
	b.sees("The receiver took it with 204")
	if got := receiver.all(); len(got) != before+1 || !got[before].signedBy(secret) || !got[before].signedBy(next) {
		t.Errorf("after the rotation: %+v", got)
	}
	b.press("Switch off")
	b.press("Save")
	b.sees("inactive", "Switch on")
	b.open("/console/changes")
	b.sees("Ada Lovelace switched the webhook crm off", "Ada Lovelace rotated the secret of the webhook crm",
		"Ada Lovelace sent 2 events again to the webhook crm")
	b.press("crm")
	b.press("Remove")
	b.press("Delete")
	b.sees("No webhook yet")
}

// pagesOfWebhooks looks at webhooks in several states, and at a delivery that has failed.
func (l *looker) pagesOfWebhooks() {
	files, admin, _ := consoleFiles(25)
	r := idleRig(l.test, l.test.TempDir(), files)
	r.seals()
	r.start()
	good, gone, down := newHookReceiver(l.test), newHookReceiver(l.test), newHookReceiver(l.test)
	gone.answers(http.StatusGone)
	down.answers(http.StatusServiceUnavailable)
	for name, more := range map[string]string{
		"crm":    good.url + `/fingerpost", "events": ["project.*", "domain.*", "mail.failed"], "projects": ["acme"]`,
		"cache":  down.url + `/purge?zone=eu", "events": ["*"]`,
		"ledger": gone.url + `/a-long-path/that-goes-on-and-on/without-an-end-in-sight"`,
		"later":  `https://later.example/", "active": false`,
	} {
		if got := r.ask(http.MethodPost, "/api/platform/webhooks", admin, `{"name": "`+name+`", "url": "`+more+`}`); got.status != http.StatusCreated {
			l.test.Fatalf("%s: %s", name, got.body)
		}
	}
	r.ask(http.MethodPut, "/api/platform/projects/"+r.projectID("acme"), admin, `{"name": "Acme Store"}`)
	l.base = r.url
	l.signIn(admin)
	testrig.Eventually(l.test, "each receiver has answered", func() bool {
		l.open("/console/webhooks")
		text := l.tab.text("main")
		return strings.Contains(text, "Delivered") && strings.Contains(text, "switched off") && strings.Contains(text, "failing")
	})
	l.look("webhooks")
	l.open("/console/webhooks/cache")
	l.press("Send a test")
	l.unfold()
	l.look("webhook")
	l.open("/console/webhooks/ledger")
	l.look("webhook-off")
	l.do(chromedp.Click(`a[aria-label$=", details"]`, chromedp.ByQuery))
	l.sees("The receiver answered 410")
	l.unfold()
	l.look("delivery")
	l.open("/console/edit?kind=webhook&id=crm")
	l.look("webhook-edit")
}
