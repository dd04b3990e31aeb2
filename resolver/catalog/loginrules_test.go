package catalog_test

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

func login(change func(l *catalog.Login)) *catalog.Login {
	l := catalog.NewLogin("company")
	l.Issuer, l.ClientID = "https://login.acme.example/realms/ops", "fingerpost"
	l.Rules = []catalog.LoginRule{{Claim: "groups", Value: "ops", Allow: catalog.MayRead}}
	change(l)
	return l
}

func TestLoginValidate(t *testing.T) {
	t.Parallel()
	allow := &catalog.HTTPAllow{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	f := func(change func(l *catalog.Login), want ...string) { // paths, with what the message has; "!" stands for a warning
		t.Helper()
		ps := login(change).Validate(allow)
		var got []string
		for _, p := range ps {
			text := p.Path + ": " + p.Message
			if p.Warning {
				text = "!" + text
			}
			got = append(got, text)
		}
		if len(got) != len(want) {
			t.Errorf("problems %q, want %q", got, want)
			return
		}
		for i := range want {
			path, text, _ := strings.Cut(want[i], ": ")
			if !strings.HasPrefix(got[i], path+": ") || !strings.Contains(got[i], text) {
				t.Errorf("problem %q, want %q", got[i], want[i])
			}
		}
	}
	issuer := func(s string) func(l *catalog.Login) { return func(l *catalog.Login) { l.Issuer = s } }
	f(func(*catalog.Login) {})
	f(issuer("http://10.1.2.3:8080/realms/ops"))
	f(issuer(""), "issuer: is required")
	f(issuer("http://192.168.0.1/"), "issuer: no --login-allow")
	f(issuer("http://login.acme.example/"), "issuer: must begin with https")
	f(issuer("login.acme.example"), "issuer: must be an address")
	f(issuer("https://u:p@login.acme.example/"), "issuer: user")
	f(issuer("https://login.acme.example/?a=b"), `issuer: must not have a "?"`)
	f(issuer("https://login.acme.example/#a"), `issuer: must not have a "#"`)
	f(issuer("https://login.acme.example/.well-known/openid-configuration"), "issuer: leave /.well-known/openid-configuration out")
	f(issuer("https://login.microsoftonline.com/common/v2.0"), "!issuer: the id of the tenant")
	f(func(l *catalog.Login) { l.Name = "Company" }, "name: ")
	f(func(l *catalog.Login) { l.ClientID = "" }, "clientId: is required")
	f(func(l *catalog.Login) { l.ClientID = "a\nb" }, "clientId: control")
	f(func(l *catalog.Login) { l.Label = strings.Repeat("x", 257) }, "label: 256")
	f(func(l *catalog.Login) { l.Scopes = []string{"openid", "groups"} })
	f(func(l *catalog.Login) { l.Scopes = []string{} }, "scopes: openid")
	f(func(l *catalog.Login) { l.Scopes = []string{"openid", "email profile", "openid"} }, "scopes: is no scope", "scopes: twice")
	f(func(l *catalog.Login) { l.Scopes = []string{"email", ""} }, `scopes: must have "openid"`, "scopes: is no scope")
	f(func(l *catalog.Login) { l.Rules = nil }, "!rules: has no rule")
	f(func(l *catalog.Login) { l.Rules = slices.Repeat(l.Rules, 100) })
	f(func(l *catalog.Login) { l.Rules = slices.Repeat(l.Rules, 101) }, "rules: 101 rules, 100 are allowed")

	rule := func(change func(r *catalog.LoginRule)) func(l *catalog.Login) {
		return func(l *catalog.Login) { change(&l.Rules[0]) }
	}
	value := func(claim, text string) func(l *catalog.Login) {
		return rule(func(r *catalog.LoginRule) { r.Claim, r.Value = claim, text })
	}
	f(value("realm_access.roles", "ops-*"))
	f(value("https://acme.example/roles", "*-ops"))
	f(value("", "ops"), "rules: rule 1: claim is required")
	f(value(`gro"ups`, "ops"), "rules: claim must have")
	f(value("gro*", "ops"), "rules: claim must have")
	f(value("groups", ""), "rules: rule 1: value is required")
	f(value("groups", "*"), `rules: "*" alone`)
	f(value("groups", "**"), `rules: "*" alone`)
	f(value("groups", "a*b"), "rules: at one end")
	f(value("groups", "*ops*"), `rules: one "*" at most`)
	f(value("groups", "a\x00b"), "rules: control characters")
	f(value("groups", strings.Repeat("é", 129)), "rules: 256")
	f(value("email", "*@agency.example"))
	f(value("email", "*.agency.example"))
	f(value("email", "ada@agency.example"))
	f(value("email", "*agency.example"), `!rules: "*@agency.example"`)
	f(value("email", "ada@*"), "!rules: any host")
	f(value("groups", "*agency"))
	f(rule(func(r *catalog.LoginRule) { r.Allow = 0 }), "rules: rule 1: allow must name")
	f(rule(func(r *catalog.LoginRule) { r.Allow |= catalog.MayCreate }), `rules: must not have "create"`)
	f(rule(func(r *catalog.LoginRule) { r.Allow = catalog.MayAll | catalog.MayPropose }))
	f(rule(func(r *catalog.LoginRule) { r.Projects = []string{} }), "!rules: is empty")
	f(rule(func(r *catalog.LoginRule) { r.Projects = []string{"Acme", "acme"} }), "rules: no slug")
	f(func(l *catalog.Login) { *l = catalog.Login{Rules: make([]catalog.LoginRule, 2)} }, "name: ", "issuer: ", "clientId: ",
		"rules: rule 1: claim", "rules: rule 1: value", "rules: rule 1: allow", "rules: rule 2: claim", "rules: rule 2: value",
		"rules: rule 2: allow")

	if ps := login(issuer("http://192.168.0.1/")).Validate(nil); len(ps) > 0 {
		t.Errorf("what another node has accepted: %v", ps)
	}
}

// TestLoginRuleString: rules that differ have different texts, by which the audit trail and plans tell a change.
func TestLoginRuleString(t *testing.T) {
	t.Parallel()
	rules := []catalog.LoginRule{
		{Claim: "groups", Value: "ops", Allow: catalog.MayRead | catalog.MayWrite},
		{Claim: "groups", Value: "ops", Allow: catalog.MayRead | catalog.MayWrite, Projects: []string{}},
		{Claim: "groups", Value: "ops", Allow: catalog.MayRead | catalog.MayWrite, Projects: []string{"acme", "shop"}},
		{Claim: "groups", Value: "ops", Allow: catalog.MayRead | catalog.MayWrite, Projects: []string{"shop", "acme"}},
		{Claim: "groups", Value: `ops": read, write on acme`, Allow: catalog.MayRead, Projects: []string{"acme"}},
		{Claim: "groups", Value: "ops", Allow: catalog.MayRead},
		{Claim: "group", Value: "ops", Allow: catalog.MayRead},
	}
	seen := map[string]bool{}
	for i := range rules {
		seen[rules[i].String()] = true
	}
	if len(seen) != len(rules) {
		t.Errorf("%d texts of %d rules: %v", len(seen), len(rules), seen)
	}
	if got, want := rules[2].String(), `groups = "ops": read, write on acme, shop`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLoginEvents: what happens to logins has an action, and so an event.
func TestLoginEvents(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"create", "update", "delete"} {
		if action := "login." + verb; !catalog.IsAuditAction(action) || catalog.CheckWebhookEvent(action) != "" {
			t.Errorf("%s is no action, or no event", action)
		}
	}
	if catalog.IsAuditAction("login.rotate") || catalog.CheckWebhookEvent("login.*") != "" {
		t.Error("there is a login.rotate, or no login.*")
	}
}

// TestLoginClone: a clone shares no memory that a rename of a slug would change.
func TestLoginClone(t *testing.T) {
	t.Parallel()
	l := login(func(l *catalog.Login) {
		l.Scopes = []string{"openid"}
		l.Rules = append(l.Rules, catalog.LoginRule{Claim: "a", Value: "b", Projects: []string{"acme", "shop"}})
	})
	c := l.Clone()
	if !reflect.DeepEqual(*l, c) {
		t.Errorf("the clone is %+v", c)
	}
	c.Scopes[0], c.Rules[0].Value, c.Rules[1].Projects[0] = "x", "x", "x"
	if l.Scopes[0] == "x" || l.Rules[0].Value == "x" || !slices.Equal(l.Slugs(), []string{"acme", "shop"}) {
		t.Errorf("the original became %+v", l)
	}
}
