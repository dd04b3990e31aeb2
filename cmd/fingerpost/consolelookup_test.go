package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"fingerpost/cmd/testrig"
)

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
	b.sees("No project that your key covers has this domain.")
	if text := b.text("main"); strings.Contains(text, "storefront.apart.example") || strings.Contains(text, "to a project") {
		t.Errorf("a key of acme that may only read sees\n%s", text)
	}
}
