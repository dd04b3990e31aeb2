package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// AllFields lists the fields of a login. The rules are one field, with a text for each.
func (l *Login) AllFields() []Field {
	return []Field{
		{Name: "name", Value: &l.Name, Heading: true, Label: "Name", Required: true,
			Help: "Lower-case letters, digits and hyphens."},
		{Name: "issuer", Value: &l.Issuer, Label: "Issuer", Required: true,
			Help: "The address of the provider, as its tokens have it in iss."},
		{Name: "clientId", Value: &l.ClientID, Label: "Client id", Required: true},
		{Name: "clientSecret", Value: &l.ClientSecret, Label: "Client secret"},
		{Name: "scopes", Value: l.Scopes, Label: "Scopes", Unset: strings.Join(DefaultLoginScopes, ", ")},
		{Name: "label", Value: &l.Label, Label: "Text of the button"},
		{Name: "caFile", Value: &l.CAFile, Label: "Certificate of a private CA"},
		{Name: "rules", File: "rule", Value: l.ruleTexts(), Elements: true, Label: "Rules"},
	}
}

func (l *Login) ruleTexts() (texts []string) {
	for i := range l.Rules {
		texts = append(texts, l.Rules[i].String())
	}
	return texts
}

// Object returns the login.
func (l *Login) Object() Object {
	return Object{Kind: KindLogin, Name: l.Name, UUID: l.UUID, Fields: l.AllFields}
}

// String returns the rule in one line, such as `groups = "ops": read, write on acme`. Different rules have different texts.
func (r *LoginRule) String() string {
	text := r.Claim + " = " + strconv.Quote(r.Value) + ": " + strings.Join(r.Allow.Words(), ", ")
	switch {
	case r.Projects == nil:
		return text + " on every project"
	case len(r.Projects) == 0:
		return text + " on no project"
	}
	return text + " on " + strings.Join(r.Projects, ", ")
}

var issuerURL = urlRule{field: "issuer", flag: "--login-allow", example: "https://login.acme.example/realms/ops",
	noUser: "the client is known by its client_id"}

const (
	maxLoginText   = 256 // bytes of a claim, a value, a client id, a label
	maxLoginScopes = 50
	maxScope       = 256
)

// Validate checks the values, those of the rules under the path "rules". allow is as in Webhook.Validate.
func (l *Login) Validate(allow *HTTPAllow) Problems {
	var ps Problems
	if msg := CheckSlug(l.Name); msg != "" {
		ps.Addf("name", "%s", msg)
	}
	l.validateIssuer(&ps, allow)
	if l.ClientID == "" {
		ps.Addf("clientId", "is required: the id of this service at the provider")
	} else if msg := checkLoginText(l.ClientID); msg != "" {
		ps.Addf("clientId", "%s", msg)
	}
	if l.Scopes != nil {
		l.validateScopes(&ps)
	}
	if l.Label != "" {
		if msg := checkLoginText(l.Label); msg != "" {
			ps.Addf("label", "%s", msg)
		}
	}
	switch n := len(l.Rules); {
	case n == 0:
		ps.Warnf("rules", "has no rule, so every sign-in with it is refused: a rule block says which claims may do what")
	case n > MaxLoginRules:
		ps.Addf("rules", "has %d rules, %d are allowed", n, MaxLoginRules)
	}
	for i := range l.Rules {
		for _, p := range l.Rules[i].Validate() {
			p.Path, p.Message = "rules", fmt.Sprintf("rule %d: %s %s", i+1, p.Path, p.Message)
			ps = append(ps, p)
		}
	}
	return ps
}

func (l *Login) validateIssuer(ps *Problems, allow *HTTPAllow) {
	if l.Issuer == "" {
		ps.Addf("issuer", "is required: the address of the provider, with https")
		return
	}
	issuerURL.check(ps, l.Issuer, allow)
	const discovery = "/.well-known/openid-configuration"
	if strings.Contains(l.Issuer, "?") {
		ps.Addf("issuer", `must not have a "?": an issuer is an address without a query`)
	}
	if strings.HasSuffix(l.Issuer, discovery) {
		ps.Addf("issuer", "is the address of the provider's configuration: leave %s out", discovery)
	}
	for _, shared := range []string{"common", "organizations"} {
		if strings.HasPrefix(l.Issuer, "https://login.microsoftonline.com/"+shared+"/") {
			ps.Warnf("issuer", "fits no token: put the id of the tenant in the place of %q", shared)
		}
	}
}

// validateScopes checks that the list has scopes of RFC 6749, section 3.3, and openid.
func (l *Login) validateScopes(ps *Problems) {
	if !slices.Contains(l.Scopes, "openid") {
		ps.Addf("scopes", `must have "openid": without it the provider sends no ID token`)
	}
	if len(l.Scopes) > maxLoginScopes {
		ps.Addf("scopes", "has %d scopes, %d are allowed", len(l.Scopes), maxLoginScopes)
	}
	for i, s := range l.Scopes {
		if msg := CheckScope(s); msg != "" {
			ps.Addf("scopes", "%q %s", s, msg)
		} else if slices.Contains(l.Scopes[:i], s) {
			ps.Addf("scopes", "%q is in the list twice", s)
		}
	}
}

// CheckScope returns what is wrong with a scope, "" for nothing.
func CheckScope(scope string) string {
	if scope == "" || len(scope) > maxScope || strings.ContainsFunc(scope, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' || r == '\\'
	}) {
		return fmt.Sprintf("is no scope: one has 1 to %d ASCII characters, without blanks, quotes and backslashes", maxScope)
	}
	return ""
}

// checkLoginText returns what is wrong with a text that people or providers choose, "" for nothing.
func checkLoginText(text string) string {
	if len(text) > maxLoginText || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return fmt.Sprintf("must have 1 to %d bytes and no control characters", maxLoginText)
	}
	return ""
}

// Validate checks the values of a rule.
func (r *LoginRule) Validate() Problems {
	var ps Problems
	if r.Claim == "" {
		ps.Addf("claim", `is required: the name of a claim, such as "groups", or its path, such as "realm_access.roles"`)
	} else if msg := checkLoginText(r.Claim); msg != "" || strings.ContainsAny(r.Claim, `"*`) {
		ps.Addf("claim", "must have 1 to %d bytes, without control characters, quotes and stars", maxLoginText)
	}
	if msg := CheckLoginValue(r.Value); msg != "" {
		ps.Addf("value", "%s", msg)
	} else if msg := r.looseAddress(); msg != "" {
		ps.Warnf("value", "%s", msg)
	}
	if r.Allow == 0 {
		ps.Addf("allow", "must name at least one of %s", strings.Join(LoginPermissions(), ", "))
	}
	if r.Allow&MayCreate != 0 {
		ps.Addf("allow", `must not have "create", which needs an owner as keys have: "write" without projects creates projects`)
	}
	ps.checkProjects(r.Projects, "rule", "the rule allows nothing")
	return ps
}

// LoginPermissions lists the words of a rule's allow list: those of keys that need no owner.
func LoginPermissions() []string { return (MayAll | MayPropose).Words() }

// CheckLoginValue returns what is wrong with the value of a rule, "" for nothing.
func CheckLoginValue(value string) string {
	switch {
	case value == "":
		return `is required: the value that the claim must have, with "*" at one end for any text`
	case strings.Trim(value, "*") == "":
		return `must not be "*" alone, which fits everyone who has the claim: name a value`
	case strings.Count(value, "*") > 1:
		return `must have one "*" at most, at one end`
	case strings.Contains(strings.TrimSuffix(value[1:], "*"), "*"):
		return `must have its "*" at one end, as in "ops-*" or "*@acme.example"`
	}
	return checkLoginText(value)
}

// looseAddress returns why a pattern for addresses fits addresses of strangers, "" if it does not.
func (r *LoginRule) looseAddress() string {
	end, open := strings.CutPrefix(r.Value, "*")
	switch {
	case r.Claim != "email":
	case open && !strings.Contains(end, "@") && !strings.HasPrefix(end, "."):
		return fmt.Sprintf(`fits addresses such as ada@not%s, too: write "*@%s"`, end, end)
	case strings.HasSuffix(r.Value, "*"):
		return "fits addresses at any host: end it with the host's name"
	}
	return ""
}
