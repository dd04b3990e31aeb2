package main

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

var personLink = regexp.MustCompile(`href="(/allow\?[^"]*)"`)

// account goes from the sign-in page of the console to the provider, and says there who it is.
func (v *visitor) account(p *accountProvider, person string) {
	v.t.Helper()
	v.ask("/console/login/company?to=/console/projects", nil)
	v.expects(http.StatusOK, "Who are you?")
	for _, m := range personLink.FindAllStringSubmatch(v.body, -1) {
		if link := html.UnescapeString(m[1]); strings.HasPrefix(link, "/allow?person="+person+"&") {
			there := *v
			there.base = p.issuer()
			there.ask(link, nil) // leads back to the console
			v.res, v.body = there.res, there.body
			return
		}
	}
	v.t.Fatalf("the provider does not know %s: %s", person, v.body)
}

// People sign in at an edge that has neither the client secret nor a way to the provider. What they save there is theirs in the
// trail, by the rules of the authority. Its restart ends their sessions, and they sign in again.
func TestClusterAccounts(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	p := newAccountProvider(t, map[string]map[string]any{
		"Ada": {"sub": "ada", "name": "Ada Lovelace", "email": "ada@acme.example", "email_verified": true, "groups": []string{"ops"}},
		"Eve": {"sub": "eve", "name": "Eve", "email": "eve@evil.example", "groups": []string{"/ops"}},
	})
	c := idleCluster(t, "fra1")
	c.put("login.hcl", fmt.Sprintf("login \"company\" {\n  issuer        = %q\n  client_id     = \"fingerpost\"\n"+
		"  client_secret = env(\"COMPANY_SECRET\")\n\n%s}\n", p.issuer(), opsRule))
	c.env = append(c.env, "COMPANY_SECRET="+accountSecret)
	c.flags = append(c.flags, "--login-allow", "127.0.0.0/8")
	c.begin()
	e, at := c.idleEdge("fra1", ""), fmt.Sprintf("127.0.0.1:%d", testrig.FreePort(t))
	e.flags = append(e.flags, "--listen", at, "--public-url", "http://"+at)
	e.start()
	e.resolves("shop.acme.example")

	ada := newVisitor(t, "http://"+at)
	ada.account(p, "Ada")
	ada.expects(http.StatusOK, "You are signed in")
	save := func(title string) {
		t.Helper()
		form := url.Values{"token": {ada.token()}, "slug": {"other"}, "labels": {"by=" + title}, "do": {"change"}}
		ada.ask("/console/bulk", form)
		draft := ada.res.Request.URL.Path
		ada.expects(http.StatusOK, "what it changes")
		ada.ask(draft, url.Values{"token": form["token"], "do": {"save"}})
		ada.expects(http.StatusOK)
	}
	save("ada")
	trail := c.get("/api/platform/audit?limit=1").body
	for _, want := range []string{`"door":"console"`, `"actor":"Ada Lovelace <ada@acme.example>"`, `"subject":"` + p.issuer() + `|ada"`} {
		if !strings.Contains(trail, want) {
			t.Errorf("the trail lacks %s: %s", want, trail)
		}
	}
	eve := newVisitor(t, "http://"+at)
	eve.account(p, "Eve")
	eve.expects(http.StatusForbidden, "no rule of the login", "eve@evil.example")
	for name, log := range map[string]string{"authority": c.logged(), "edge": e.logged()} {
		if strings.Contains(log, "evil.example") || strings.Contains(log, accountSecret) {
			t.Errorf("the log of the %s has what nobody may read:\n%s", name, log)
		}
	}

	c.halt()
	ada.ask("/console/projects", nil)
	ada.expects(http.StatusOK, "Other")
	eve.ask("/console/login/company", nil)
	eve.expects(http.StatusServiceUnavailable, "authority")
	c.start()
	if err := poll(testrig.Patience, func() error {
		ada.ask("/console/changes", nil)
		if !strings.HasPrefix(ada.res.Request.URL.Path, "/console/sign-in") {
			return fmt.Errorf("still on %s", ada.res.Request.URL)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ada.expects(http.StatusOK, "does not know it any more")
	ada.account(p, "Ada")
	ada.expects(http.StatusOK, "You are signed in")
	save("again")
}
