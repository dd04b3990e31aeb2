package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// rule is a rule of a login as a file has it. projects is "" for every project.
func rule(claim, value, allow, projects string) string {
	if projects != "" {
		projects = "    projects = [" + projects + "]\n"
	}
	return fmt.Sprintf("  rule {\n    claim = %q\n    value = %q\n    allow = [%s]\n%s  }\n", claim, value, allow, projects)
}

// A proposal belongs to the person who has made it, in all of that person's sessions and to nobody else of the login. It is
// applied, and an approval counts, by the rules of that moment for the claims that the person had.
func TestPersonsPropose(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	const agency, ops = "\"read\", \"propose\"", "\"read\", \"write\", \"propose\""
	all := []string{rule("email", "*@agency.example", agency, `"acme"`), rule("groups", "support", agency, ""), rule("groups", "ops", ops, "")}
	h, save := newGitFolder(t, "\nproject \"other\" {\n  name = \"Other\"\n}\n")
	rules := func(list ...string) {
		t.Helper()
		save("login.hcl", fmt.Sprintf("login \"company\" {\n  issuer    = %q\n  client_id = \"fingerpost\"\n%s}\n", issuerOfTests,
			strings.Join(list, "")))
	}
	rules(all...)
	session := func(subject string, claims catalog.Claims) string {
		text, end := h.resolver.AddPersonKey(&resolver.Person{Login: "company", Issuer: issuerOfTests, ClientID: "fingerpost",
			Subject: subject, Claims: claims})
		t.Cleanup(end)
		return text
	}
	agencyClaims := catalog.Claims{"email": "Zoe@Agency.example", "email_verified": true}
	zoe, again := session("zoe", agencyClaims), session("zoe", agencyClaims)
	zia := session("zia", agencyClaims)
	sue := session("sue", catalog.Claims{"groups": []any{"support"}})
	ada := session("ada", catalog.Claims{"groups": []any{"x", "ops"}})
	acme, err := h.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	project, proposal := fmt.Sprint("/api/platform/projects/", acme.ID), "/api/platform/proposals/by-zoe"
	asks := func(what, method, path, key, body string, status int, want ...string) {
		t.Helper()
		var header []string
		if body != "" {
			header = []string{"Content-Type: application/json"}
		}
		if what == "propose" {
			header = append(header, "X-Propose: by-zoe")
		}
		a := h.askBody(method, path, key, body, header...)
		if a.StatusCode != status {
			t.Fatalf("%s: %s %s: %d, want %d: %s", what, method, path, a.StatusCode, status, a.body)
		}
		for _, text := range want {
			if !strings.Contains(string(a.body), text) {
				t.Errorf("%s: %q is not in %s", what, text, a.body)
			}
		}
	}
	asks("a write", "PUT", project, zoe, `{"name":"By Zoe"}`, 403, `"requires":"write"`)
	asks("propose", "PUT", project, zoe, `{"name":"By Zoe"}`, 202, "By Zoe")
	asks("another session's look", "GET", proposal, again, "", 200, `"own":true`)
	asks("another person's look", "GET", proposal, zia, "", 200, `"own":false`)
	asks("another person's drop", "DELETE", proposal, zia, "", 403)
	asks("a drop by who may propose everywhere", "DELETE", proposal, sue, "", 403)
	asks("an own approval", "POST", proposal+"/approve", again, "", 403)
	asks("an approval", "POST", proposal+"/approve", ada, "", 200, `"counts":true`)
	rules(all[:2]...)
	asks("the approval without its rule", "GET", proposal, h.all, "", 200, `"counts":false`)
	rules(all[1:]...)
	asks("a look without the maker's rule", "GET", proposal, h.all, "", 200, "may not write any more")
	asks("apply without the maker's rule", "POST", proposal+"/apply", h.all, "{}", 409, "may not write any more")
	rules(rule("email", "*@agency.example", agency, `"other"`), all[2])
	if a := h.ask("POST", proposal+"/apply", h.all); a.StatusCode == http.StatusOK {
		t.Errorf("applied although the maker may propose for another project alone: %s", a.body)
	}
	rules(rule("email", "zoe@agency.example", agency, `"acme"`), all[2]) // another rule, the same claims
	asks("apply by who has no write", "POST", proposal+"/apply", zoe, "{}", 403)
	asks("apply", "POST", proposal+"/apply", ada, "{}", 200)
	asks("the result", "GET", project, zoe, "", 200, "By Zoe")
	asks("the trail", "GET", "/api/platform/audit?actor="+issuerOfTests+"%7Cada", ada, "", 200, `"proposal.apply"`,
		`"subject":"`+issuerOfTests+`|ada"`)
}
