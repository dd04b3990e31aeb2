package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

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
	b.sees("Somebody has changed this meanwhile", "Theirs, by the files just now")
	b.press("Show the change")
	b.sees(`- name = "Theirs"`, `+ name = "Mine"`)
	// Between the diff and the save.
	byHand("Storefront and back office", "By hand")
	b.press("Save")
	b.sees("Somebody has changed this meanwhile", "Also changed, and kept as it is now: Description")
	b.press("Show the change")
	// With both sides in one field, a tick takes theirs; also without JavaScript.
	byHand("By hand", "By another hand")
	b.press("Change it")
	b.fill("description", "Mine, too")
	byHand("By another hand", "By a third hand")
	b.press("Show the change")
	b.sees("Description, in the file now", "By a third hand")
	b.do(emulation.SetScriptExecutionDisabled(true))
	defer b.do(emulation.SetScriptExecutionDisabled(false))
	b.do(chromedp.Click("#theirs-description", chromedp.ByQuery))
	b.press("Show the change")
	b.press("Save")
	b.sees("Saved into the file")
	if now := v.text("acme.hcl"); !strings.Contains(now, `"By a third hand"`) || !strings.Contains(now, `"Mine" # as customers know it`) {
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
