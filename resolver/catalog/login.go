package catalog

import (
	"encoding/json"
	"slices"
	"strings"
)

// A Login is a declared provider of OpenID Connect at which people sign in to the console (configsrc/login.md).
type Login struct {
	_            struct{} `cbor:",toarray"`
	Name         string   // the block's label, a slug
	UUID         UUID     // see DeriveLoginUUID
	Issuer       string
	ClientID     string
	ClientSecret Secret   // none: a public client, which PKCE alone protects
	Scopes       []string // nil: DefaultLoginScopes
	Label        string   // on the button; "": the name
	CAFile       string   // PEM, below the config folder or the folder of secrets; "": the machine's authorities
	Rules        []LoginRule
}

// A LoginRule says what people may do whose claims have a value.
type LoginRule struct {
	_        struct{} `cbor:",toarray"`
	Claim    string
	Value    string // "*" at one end stands for any text
	Allow    Permission
	Projects []string // slugs; nil: every project, an empty list none
}

// Limits on logins.
const (
	MaxLogins     = 20
	MaxLoginRules = 100 // of one login: all of them are judged at each request
)

// DefaultLoginScopes are asked for without a line in the block.
var DefaultLoginScopes = []string{"openid", "email", "profile"}

// NewLogin returns a login with the values that hold without a line in its block.
func NewLogin(name string) *Login { return &Login{Name: name, UUID: DeriveLoginUUID(name)} }

// DeriveLoginUUID returns the identity of a login: it follows from the name.
func DeriveLoginUUID(name string) UUID { return deriveUUID(KindLogin, name) }

// SecretContext returns the context for which the client secret is sealed. It does not have the issuer, so that a person
// may change that in the file.
func (l *Login) SecretContext() string { return l.UUID.String() + "/client_secret" }

// Clone returns a copy of l that shares no mutable memory with it.
func (l *Login) Clone() Login {
	c := *l
	c.Scopes, c.Rules = slices.Clone(l.Scopes), slices.Clone(l.Rules)
	for i := range c.Rules {
		c.Rules[i].Projects = slices.Clone(c.Rules[i].Projects)
	}
	return c
}

// Slugs lists the slugs that rules name, nil if none does.
func (l *Login) Slugs() (slugs []string) {
	for i := range l.Rules {
		slugs = append(slugs, l.Rules[i].Projects...)
	}
	return slugs
}

// A Grant is a set of permissions on some projects. What a person may do is a list of grants, which are not combined: read
// on every project and write on one are not write on every project.
type Grant struct {
	Allow    Permission
	Projects []string // slugs; nil: every project, an empty list none
}

// Claims are what a provider says about a person, as its JSON has it.
type Claims map[string]any

// Values returns the texts of a claim: of the claim with that literal name or, if the provider sent none, of the path
// with dots. A claim that is neither a text nor a list has none, and of a list only the texts count.
func (c Claims) Values(claim string) []string {
	value, found := c[claim]
	if !found {
		value = map[string]any(c)
		for step := range strings.SplitSeq(claim, ".") {
			object, is := value.(map[string]any)
			if !is {
				return nil
			}
			value = object[step]
		}
	}
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		var texts []string
		for _, x := range v {
			if text, is := x.(string); is {
				texts = append(texts, text)
			}
		}
		return texts
	}
	return nil
}

// Email returns the address of the person, "" if the provider sent none or says that it is not verified.
func (c Claims) Email() string {
	switch v := c["email_verified"].(type) {
	case nil:
	case bool:
		if !v {
			return ""
		}
	case string:
		if strings.EqualFold(v, "false") {
			return ""
		}
	}
	address, _ := c["email"].(string)
	return address
}

// ParseClaims decodes a JSON object of claims.
func ParseClaims(text []byte) (c Claims, err error) {
	err = json.Unmarshal(text, &c)
	return c, err
}

// Matches reports whether the claims have the rule's value. An address counts only while it is verified, and its ASCII
// case does not count; everything else is compared exactly.
func (r *LoginRule) Matches(c Claims) bool { return r.Matched(c) != "" }

// Matched returns the first value of the claims that the rule is for, "" if there is none.
func (r *LoginRule) Matched(c Claims) string {
	values, want, fold := c.Values(r.Claim), r.Value, r.Claim == "email"
	if fold {
		values, want = []string{c.Email()}, lowerASCII(want)
	}
	i := slices.IndexFunc(values, func(v string) bool {
		if fold {
			v = lowerASCII(v)
		}
		return v != "" && matchesEnds(want, v)
	})
	if i < 0 {
		return ""
	}
	return values[i]
}

// matchesEnds reports whether a text is the pattern, in which "*" at one end stands for any text.
func matchesEnds(pattern, text string) bool {
	if end, found := strings.CutPrefix(pattern, "*"); found {
		return strings.HasSuffix(text, end)
	}
	if begin, found := strings.CutSuffix(pattern, "*"); found {
		return strings.HasPrefix(text, begin)
	}
	return text == pattern
}

func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}

// Grants returns what a person with these claims may do: one grant for each rule that matches.
func (l *Login) Grants(c Claims) (grants []Grant) {
	for i := range l.Rules {
		if r := &l.Rules[i]; r.Matches(c) {
			grants = append(grants, Grant{Allow: r.Allow, Projects: r.Projects})
		}
	}
	return grants
}
