package login_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"fingerpost/api/login"
	"fingerpost/resolver/catalog"
)

// TestUserinfo: userinfo adds what the ID token lacks, and changes nothing that it says.
func TestUserinfo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims, info object // over the usual claims; nil: left out
		rules        []catalog.LoginRule
		asked        bool
		want         object // of the claims
		email        string // of the person
	}{
		"not asked": {want: object{"groups": []any{"ops"}}, email: "ada@acme.example"},
		"for a rule": {claims: object{"groups": nil}, info: object{"groups": []string{"ops"}}, asked: true,
			want: object{"groups": []any{"ops"}}, email: "ada@acme.example"},
		"for a rule with a path": {rules: []catalog.LoginRule{{Claim: "realm_access.roles", Value: "x"}}, asked: true,
			info: object{"realm_access": object{"roles": []string{"x"}}}, want: object{"realm_access": object{"roles": []any{"x"}}}, email: "ada@acme.example"},
		"for the name": {claims: object{"name": nil}, info: object{"name": "Ada King"}, asked: true, want: object{"name": "Ada King"},
			email: "ada@acme.example"},
		"for the address": {claims: object{"email": nil}, info: object{"email": "king@acme.example"}, asked: true,
			want: object{"email": "king@acme.example"}, email: "king@acme.example"},
		"the ID token wins": {claims: object{"name": nil}, info: object{"groups": []string{"admins"}, "email": "eve@evil.example", "iss": "x"},
			asked: true, want: object{"groups": []any{"ops"}, "email": "ada@acme.example"}, email: "ada@acme.example"},
		"the ID token wins, empty": {claims: object{"groups": []string{}}, info: object{"groups": []string{"admins"}}, asked: true,
			want: object{"groups": []any{}}, email: "ada@acme.example"},
		"a literal name over a path": {claims: object{"name": nil, "realm_access": object{"roles": []string{"guest"}}},
			info: object{"realm_access.roles": "admin"}, asked: true, want: object{"realm_access.roles": nil}, email: "ada@acme.example"},
		"another person": {claims: object{"groups": nil}, info: object{"sub": "eve", "groups": []string{"ops"}}, asked: true,
			want: object{"groups": nil, "sub": "ada"}, email: "ada@acme.example"},
		"a person twice": {claims: object{"groups": nil}, info: object{"sub": "eve", "\u017fub": "ada", "groups": []string{"ops"}}, asked: true,
			want: object{"groups": nil}, email: "ada@acme.example"},
		"nobody": {claims: object{"groups": nil}, info: object{"sub": nil, "groups": []string{"ops"}}, asked: true,
			want: object{"groups": nil}, email: "ada@acme.example"},
		"not verified there": {claims: object{"email": nil, "email_verified": true},
			info: object{"email": "eve@acme.example", "email_verified": false}, asked: true, want: object{"email": "eve@acme.example"}},
		"not verified, as text":        {claims: object{"email": nil}, info: object{"email": "eve@acme.example", "email_verified": "false"}, asked: true},
		"not verified in the ID token": {claims: object{"name": nil, "email_verified": false}, info: object{"email_verified": true}, asked: true},
		"an address that is none":      {claims: object{"email": "ada@acme.example\r\nX: y"}},
		"too much": {claims: object{"groups": nil}, info: object{"groups": slices.Repeat([]string{"ops"}, 20_000)}, asked: true,
			want: object{"groups": nil}, email: "ada@acme.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newHostile(t)
			for claim, value := range c.claims {
				p.claims[claim] = value
			}
			for claim, value := range c.info {
				if p.info[claim] = value; value == nil {
					delete(p.info, claim)
				}
			}
			r := newRig(t, p)
			if c.rules != nil {
				l := company(p.URL)
				l.Rules = c.rules
				r.declare(l)
			}
			person := r.signedIn()
			if asked := p.userinfos.Load() == 1; asked != c.asked {
				t.Errorf("userinfo was asked: %v", asked)
			}
			for claim, want := range c.want {
				got, _ := json.Marshal(person.Claims[claim])
				if text, _ := json.Marshal(want); string(got) != string(text) {
					t.Errorf("%s is %s, want %s", claim, got, text)
				}
			}
			if person.Email != c.email || person.Subject != "ada" {
				t.Errorf("%s with %q, want %q", person.Subject, person.Email, c.email)
			}
		})
	}
}

// TestUserinfoAway: who signs in learns what is missing.
func TestUserinfoAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		handler http.HandlerFunc
		want    string
	}{
		{say(503, ""), "answered 503"},
		{say(200, "<html>"), "gave no userinfo"},
		{func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "answered 302"},
		{flood, "more than 1 MiB"},
		{func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, object{"sub": "eve"}) }, "about another person"},
	} {
		p := newHostile(t)
		p.claims["groups"] = nil
		p.handlers["/userinfo"] = c.handler
		r := newRig(t, p)
		person := r.signedIn()
		if len(person.Notes) != 1 || !strings.Contains(person.Notes[0], c.want) {
			t.Errorf("notes %q, want %q", person.Notes, c.want)
		}
		if !strings.Contains(r.log.String(), "userinfo of a sign-in was left out") {
			t.Error("the log does not say it")
		}
	}
	p := newHostile(t)
	p.claims["groups"] = nil
	delete(p.document, "userinfo_endpoint")
	if person := newRig(t, p).signedIn(); len(person.Notes) != 0 {
		t.Errorf("notes %q", person.Notes)
	}
}

// TestNames: a person has a name of one line.
func TestNames(t *testing.T) {
	t.Parallel()
	p := newHostile(t)
	r := newRig(t, p)
	for _, c := range []struct{ claims, want any }{
		{object{}, "Ada"},
		{object{"name": "  Ada\r\n\u2028King "}, "Ada King"},
		{object{"name": strings.Repeat("ä", 150)}, strings.Repeat("ä", 100)},
		{object{"name": "", "preferred_username": "king"}, "king"},
		{object{"name": []string{"Ada"}, "preferred_username": 7}, "ada"},
	} {
		p.set(func() { p.claims = c.claims.(object) })
		if person := r.signedIn(); person.Name != c.want {
			t.Errorf("%v: the name is %q", c.claims, person.Name)
		}
	}
}

// TestRefusalHints: the traps that people report are recognised.
func TestRefusalHints(t *testing.T) {
	t.Parallel()
	const (
		keycloak = "https://login.acme.example/realms/ops"
		entra    = "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0"
		google   = "https://accounts.google.com"
		id       = "1ae1e5a2-1c8e-4d7b-9f0a-6b1c2d3e4f50"
	)
	f := func(issuer, claim, value, claims, want string) {
		t.Helper()
		c, err := catalog.ParseClaims([]byte(claims))
		if err != nil {
			t.Fatal(err)
		}
		l := &catalog.Login{Issuer: issuer, Rules: []catalog.LoginRule{{Claim: claim, Value: value}, {Claim: claim, Value: value}}}
		hints := login.RefusalHints(l, c)
		if got := strings.Join(hints, "\n"); want == "" && got != "" || !strings.Contains(got, want) || len(hints) > 1 {
			t.Errorf("%s = %s of %s: hints %q, want %q", claim, value, claims, hints, want)
		}
	}
	f(keycloak, "groups", "ops", `{"groups":["/ops","/dev"]}`, "Full group path")
	f(keycloak, "groups", "/ops", `{"groups":["ops"]}`, "Full group path")
	f(keycloak, "groups", "ops*", `{"groups":["/ops-eu"]}`, "Full group path")
	f(keycloak, "groups", "ops", `{"groups":["Ops"]}`, "upper and lower case")
	f(keycloak, "groups", "ops", `{"groups":["/Ops"]}`, "the slash, and upper and lower case")
	f(keycloak, "groups", "ops", `{"groups":["ops "]}`, "a space")
	f(keycloak, "groups", "ops", `{}`, "Group Membership")
	f(keycloak, "roles", "ops", `{"realm_access":{"roles":["ops"]}}`, `claim = "realm_access.roles"`)
	f(keycloak, "roles", "ops", `{"a":{"b":{"c":{"d":{"e":{"roles":["ops"]}}}}}}`, `sent no claim "roles"`)
	f(keycloak, "realm_access", "ops", `{"realm_access":{"roles":["ops"]}}`, `such as "realm_access.roles"`)
	f(keycloak, "groups", "ops", `{"groups":[{"name":"ops"}]}`, "a list without texts")
	f(keycloak, "groups", "ops", `{"groups":[]}`, "is empty")
	f(keycloak, "admin", "true", `{"admin":true}`, "is no text")
	f(keycloak, "groups", "ops", `{"groups":["dev"]}`, "")
	f(keycloak, "groups", "ops", `{"groups":["ops"]}`, "")
	f(keycloak, "email", "*@acme.example", `{"email":"ada@acme.example","email_verified":false}`, "not verified")
	f(keycloak, "email", "*@acme.example", `{"email":"ada@other.example","email_verified":true}`, "")
	f(entra, "groups", "ops", `{"hasgroups":true}`, "more than 200")
	f(entra, "groups", "ops", `{"_claim_names":{"groups":"src1"},"_claim_sources":{"src1":{}}}`, "more than 200")
	f(entra, "groups", "ops", `{}`, "token configuration")
	f(entra, "groups", "ops", `{"groups":["`+id+`"]}`, "object id")
	f(entra, "groups", id, `{"groups":["`+strings.ToUpper(id)+`"]}`, "upper and lower case")
	f(entra, "email", "*@acme.example", `{"preferred_username":"ada@acme.example"}`, "optional claim")
	f(google, "groups", "ops", `{"hd":"acme.example"}`, `"hd"`)
	f("https://id.acme.example", "groups", "ops", `{}`, "the scope \"groups\"")
	f("https://id.acme.example", "team", "ops", `{}`, `sent no claim "team"`)
}

// FuzzRefusalHints: whatever a provider sends, hints are few and short, and a claim that matches has none.
func FuzzRefusalHints(f *testing.F) {
	f.Add(`{"groups":["/ops"],"a":{"groups":"x"}}`, "groups", "ops")
	f.Add(`{"email":"a@b.example","email_verified":"false"}`, "email", "*@b.example")
	f.Fuzz(func(t *testing.T, claims, claim, value string) {
		c, err := catalog.ParseClaims([]byte(claims))
		if err != nil {
			return
		}
		l := &catalog.Login{Issuer: "https://login.microsoftonline.com/x/v2.0", Rules: []catalog.LoginRule{{Claim: claim, Value: value}}}
		hints := login.RefusalHints(l, c)
		if len(hints) > 10 || l.Rules[0].Matches(c) && len(hints) > 0 {
			t.Errorf("hints %q", hints)
		}
		for _, hint := range hints {
			if len(hint) > 6000 || strings.ContainsAny(hint, "\r\n") {
				t.Errorf("hint %q", hint)
			}
		}
	})
}
