package main

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestConsoleOneBox: whatever people have, one Enter in the box answers it: a page, or the look-up with the answer in
// words. A key that does not reach the thing gets the same as for a thing that does not exist.
func TestConsoleOneBox(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	post := testrig.NewSink(t)
	files, admin, shopOnly := consoleFiles(post.Port())
	r := idleRig(t, t.TempDir(), files)
	r.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	r.start()
	send := func(domain, to, subject string) (id string) {
		t.Helper()
		got := r.ask(http.MethodPost, "/api/mail/send/raw", admin, fmt.Sprintf(
			`{"domain":%q,"toEmail":%q,"subject":%q,"bodyText":"Hello"}`, domain, to, subject),
			"X-Internal-Service-Token: "+admin, "X-Internal-Service-Name: shop", "Content-Type: application/json")
		m := regexp.MustCompile(`"messageId":"([^"]+)"`).FindStringSubmatch(got.body)
		if m == nil {
			t.Fatalf("send: %d %s", got.status, got.body)
		}
		return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(m[1])
	}
	message := send("shop.acme.example", "ada@example.com", "Your order 17")
	for n := range 5 {
		send("shop.acme.example", "ada@example.com", fmt.Sprint("Reminder ", n))
	}
	// The sink refuses "nobody" for good.
	r.ask(http.MethodPost, "/api/mail/send/raw", admin, `{"domain":"shop.acme.example","toEmail":"nobody@example.com","subject":"No","bodyText":"x"}`,
		"X-Internal-Service-Token: "+admin, "X-Internal-Service-Name: shop", "Content-Type: application/json")
	changed := r.ask(http.MethodPut, "/api/platform/projects/"+r.projectID("acme"), admin, `{"description":"new"}`, "Content-Type: application/json")
	request := changed.header.Get("X-Request-Id")
	acme, other := r.projectID("acme"), r.projectID("other")
	uuid := func(id string) string {
		t.Helper()
		return regexp.MustCompile(`"uuid":"([^"]+)"`).FindStringSubmatch(r.ask(http.MethodGet, "/api/platform/projects/"+id, admin, "").body)[1]
	}
	mails := regexp.MustCompile(`^/console/mail/\d+/\d+$`)
	for _, key := range []string{admin, shopOnly} {
		v := newVisitor(t, r.url)
		v.signIn(key)
		f := func(pasted, page string, says ...string) {
			t.Helper()
			v.ask("/console/lookup?domain="+url.QueryEscape(pasted), nil)
			v.expects(http.StatusOK, says...)
			if at := v.res.Request.URL.RequestURI(); page != "" && at != page && !(page == "mail" && mails.MatchString(at)) {
				t.Errorf("%q leads to %s, want %s", pasted, at, page)
			}
		}
		acmePage, decision := "/console/projects/acme", "leads to the project"
		f("shop.acme.example", "", decision)
		f(" https://shop.acme.example/cart?x=1 ", "", decision)
		f("shop.acme.example:8443", "", decision)
		f("acme", acmePage)
		f(acme, acmePage)
		f(uuid(acme), acmePage)
		f("acme shop", acmePage)
		f(message, "mail", "Your order 17")
		f(strings.Trim(message, "<>"), "mail", "Your order 17")
		f("Ada@EXAMPLE.com", "", "6 mails to Ada@EXAMPLE.com")
		if strings.Contains(v.body, "has this domain") {
			t.Errorf("the recipient's own domain is told as a fault: %s", v.body)
		}
		f("nobody@example.com", "", "1 mail to nobody@example.com, 1 not sent", "the recipient&#39;s address is refused")
		f("Ada Lovelace <ada@example.com>", "", "6 mails to ada@example.com")
		f("ada@exampel.com", "", "No mail to ada@exampel.com", "has this domain", "Projects and mail with these words", "Reminder 3")
		f("<ada@shop.acme.example>", "", "No mail to ada@shop.acme.example", decision)
		f(request, "/console/changes?request="+request)
		f("acm shop.acme.exmple", "", "shop.acme.example")
		f("reminder 3", "", "Projects and mail with these words", "Reminder 3")
		if key == admin {
			f("other", "/console/projects/other")
			continue
		}
		for kind, pair := range map[string][2]string{"slug": {"other", "othen"}, "id": {other, "12345678901234"},
			"uuid": {uuid(other), "00000000-0000-4000-8000-000000000000"}, "domain": {"other.example", "othen.example"}} {
			var pages [2]string
			for i, text := range pair {
				f(text, "")
				page := strings.ReplaceAll(strings.ReplaceAll(v.body, "another", ""), strings.TrimSuffix(text, ".example"), "X")
				_, found, _ := strings.Cut(page, `<div id="found"`)
				pages[i], _, _ = strings.Cut(found, "<footer")
			}
			if pages[0] != pages[1] {
				t.Errorf("%s: what the key does not reach is\n%s\nand what does not exist\n%s", kind, pages[0], pages[1])
			}
		}
	}
}
