package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/api/console"
	"fingerpost/api/login"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// An accountRig is a server over files at which people sign in.
type accountRig struct {
	*desk
	people *deskOfTests
	passed atomic.Int64 // of the time, in nanoseconds, for its console
}

// newAccountRig starts one. edge is nil, or the way to its authority.
func newAccountRig(t *testing.T, edge api.Edge, rules ...string) *accountRig {
	t.Helper()
	r := &accountRig{desk: &desk{dir: t.TempDir(), edge: edge}, people: &deskOfTests{people: map[string]*login.Person{
		"ops":  somebody("ada", catalog.Claims{"groups": []any{"ops"}}),
		"shop": somebody("bob", catalog.Claims{"groups": []any{"shop"}}),
		"none": somebody("eve", catalog.Claims{"groups": []any{"/ops"}}),
	}}}
	r.console = &console.Options{Now: func() time.Time { return time.Now().Add(time.Duration(r.passed.Load())) },
		SignIn: console.SignIn{Desk: r.people, PublicURL: "http://127.0.0.1:1",
			Declared: func() []catalog.Login { return r.resolver.Logins() }}}
	r.open(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n", "globex.hcl": "project \"globex\" {\n  name = \"Globex\"\n}\n",
		"login.hcl": loginFile(rules...)})
	r.addr = r.listen(api.Platform | api.Mail | api.Console)
	return r
}

func loginFile(rules ...string) string {
	return fmt.Sprintf("login \"company\" {\n  issuer    = %q\n  client_id = \"fingerpost\"\n%s}\n", issuerOfTests, strings.Join(rules, ""))
}

// rules changes the rules of the login.
func (r *accountRig) rules(rules ...string) {
	r.t.Helper()
	was := fmt.Sprint(r.resolver.Logins())
	r.save(r.t, map[string]string{"login.hcl": loginFile(rules...)})
	testrig.Eventually(r.t, "the rules have changed", func() bool { return fmt.Sprint(r.resolver.Logins()) != was })
}

// as is a browser in which somebody has signed in.
func (r *accountRig) as(code string) *loginRig {
	r.t.Helper()
	b := &loginRig{linkRig: newBrowser(r.house), desk: r.people}
	if res := b.as(code); res.StatusCode != http.StatusOK {
		r.t.Fatalf("%s does not get in: %d\n%s", code, res.StatusCode, b.page)
	}
	return b
}

var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// post sends a form of the session.
func (r *loginRig) post(path string, form url.Values) *http.Response {
	r.t.Helper()
	if r.open("/console/projects"); formToken.FindStringSubmatch(r.page) == nil {
		r.t.Fatalf("no session:\n%s", r.page)
	}
	form.Set("token", formToken.FindStringSubmatch(r.page)[1])
	return r.send(path, form, "Cookie", r.cookie)
}

// suspend makes a draft that suspends a project, and returns its page.
func (r *loginRig) suspend(slug string) string {
	r.t.Helper()
	res := r.post("/console/bulk", url.Values{"slug": {slug}, "status": {"SUSPENDED"}, "do": {"change"}})
	if res.StatusCode != http.StatusSeeOther {
		r.t.Fatalf("the change of %s: %d\n%s", slug, res.StatusCode, r.page)
	}
	return res.Header.Get("Location")
}

// What a person has not saved yet waits on the page Changes, also in that person's other browsers, for nobody else, and as
// long as the rules let the person change it.
func TestConsolePersonsDrafts(t *testing.T) {
	t.Parallel()
	ops, shop := rule("groups", "ops", `"read", "write"`, ""), rule("groups", "shop", `"read", "write"`, `"acme"`)
	r := newAccountRig(t, nil, ops, shop)
	ada, again, bob := r.as("ops"), r.as("ops"), r.as("shop")
	draft := ada.suspend("acme")
	sees := func(b *loginRig, listed bool, status int) {
		t.Helper()
		if b.open("/console/changes"); strings.Contains(b.page, draft) != listed {
			t.Errorf("listed is not %v:\n%s", listed, b.page)
		}
		if res := b.open(draft); res.StatusCode != status {
			t.Errorf("the draft: %d, want %d", res.StatusCode, status)
		}
	}
	sees(ada, true, 200)
	if ada.open("/console/changes"); strings.Contains(ada.page, "another browser") || !strings.Contains(ada.page, "1 change not saved yet") {
		t.Errorf("the browser that made it:\n%s", ada.page)
	}
	sees(again, true, 200)
	if again.open("/console/changes"); !strings.Contains(again.page, "made in another browser") {
		t.Errorf("another browser:\n%s", again.page)
	}
	sees(bob, false, 404)
	if res := bob.post(draft, url.Values{"do": {"save"}}); res.StatusCode != http.StatusNotFound {
		t.Errorf("another person saves it: %d", res.StatusCode)
	}

	r.rules(rule("groups", "ops", `"read"`, ""), shop)
	sees(again, false, 403)
	r.rules(rule("groups", "ops", `"read"`, ""), rule("groups", "ops", `"write"`, `"globex"`), shop)
	sees(again, false, 403)
	if res := again.post(draft, url.Values{"do": {"save"}}); res.StatusCode != http.StatusForbidden {
		t.Errorf("it is saved without a rule: %d\n%s", res.StatusCode, again.page)
	}
	r.rules(rule("groups", "ops", `"read"`, ""), rule("groups", "ops", `"write"`, `"acme"`), shop)
	sees(ada, true, 200)
	if res := again.post(draft, url.Values{"do": {"save"}}); res.StatusCode != http.StatusSeeOther {
		t.Fatalf("the other browser saves it: %d\n%s", res.StatusCode, again.page)
	}
	if p, err := r.resolver.ProjectBySlug("acme"); err != nil || p.Status != catalog.StatusSuspended {
		t.Errorf("the project is %v, %v", p.Status, err)
	}
	sees(ada, false, 404)
}
