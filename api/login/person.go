package login

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"fingerpost/resolver/catalog"
)

// Bounds of what is kept of a person.
const (
	maxTokenBytes   = 64 << 10 // of an ID token, and of userinfo
	maxHintBytes    = 4 << 10  // of an ID token in an address
	maxSubjectBytes = 255      // OpenID Connect Core 2
	maxNameRunes    = 100
)

// A Person is what a provider says about who has signed in. It is not changed.
type Person struct {
	Login                     string // the name of the block
	Issuer, ClientID, Subject string
	// Name and Email are for X-Actor. Name is preferred_username or Subject where the provider gives no name; Email is ""
	// unless it is an address, and verified.
	Name, Email string
	Claims      catalog.Claims // of the ID token, and further ones of userinfo
	Notes       []string       // sentences on what could not be learned, for the page that refuses the person
	SignOut     string         // the provider's page that ends the session there; "" if it has none
	// KeyText is of the key that the authority of a cluster has made for a session at an edge. "": on another node, and where
	// no rule lets the person in.
	KeyText string
}

// person verifies the tokens of a flow, and reads who has signed in.
func (d *Desk) person(ctx context.Context, l *catalog.Login, f *flow, token *oauth2.Token) (*Person, *Error) {
	raw, _ := token.Extra("id_token").(string)
	switch {
	case raw == "":
		return nil, &Error{Status: http.StatusBadGateway, Message: "The provider gave no ID token.",
			Hint: "scopes must name openid, and the client at the provider must be one of OpenID Connect."}
	case len(raw) > maxTokenBytes:
		return nil, &Error{Status: http.StatusBadGateway, Message: "The ID token has more than 64 KiB."}
	}
	keys := &keysOnce{KeySet: f.provider.keys}
	verified, err := oidc.NewVerifier(l.Issuer, keys, &oidc.Config{ClientID: l.ClientID, Now: d.o.Now,
		SupportedSigningAlgs: f.provider.algorithms()}).Verify(ctx, raw)
	if err != nil {
		return nil, asking("good ID token", cmp.Or(keys.err, err), raw, token.AccessToken, token.RefreshToken)
	}
	p := &Person{Login: l.Name, Issuer: l.Issuer, ClientID: l.ClientID, Subject: verified.Subject,
		SignOut: endAddress(f.provider.document.EndSession, l.ClientID, raw)}
	if err := verified.Claims(&p.Claims); err != nil {
		return nil, asking("good ID token", err)
	}
	if wrong := p.wrong(verified.Nonce, f.nonce); wrong != "" {
		return nil, &Error{Status: http.StatusBadGateway, Message: "The provider gave no good ID token: " + wrong + "."}
	}
	if p.lacks(l) {
		if note := p.addUserinfo(ctx, f.provider, token); note != "" {
			d.o.Logger.Warn("userinfo of a sign-in was left out", "login", l.Name, "error", note)
			p.Notes = append(p.Notes, note)
		}
	}
	p.Name = cmp.Or(p.line("name"), p.line("preferred_username"), line(p.Subject))
	if address, err := catalog.ParseAddress(p.Claims.Email()); err == nil {
		p.Email = address
	}
	return p, nil
}

// endAddress returns where a browser ends its session at the provider, "" if the provider has no such page.
func endAddress(page, clientID, idToken string) string {
	u, err := url.Parse(page)
	if err != nil || page == "" {
		return ""
	}
	query := u.Query()
	query.Set("client_id", clientID)
	if len(idToken) <= maxHintBytes {
		query.Set("id_token_hint", idToken)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// wrong says what go-oidc leaves to its caller, "" if all is well.
func (p *Person) wrong(nonce, want string) string {
	party, foreign := p.Claims["azp"]
	if party == p.ClientID {
		foreign = false
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(nonce), []byte(want)) == 0:
		return "its nonce is not that of this sign-in"
	case p.Claims["sub"] != p.Subject: // package json reads "Sub" as sub, too
		return "it has more than one sub"
	case p.Subject == "" || len(p.Subject) > maxSubjectBytes || strings.ContainsFunc(p.Subject, catalog.BreaksLine) ||
		!utf8.ValidString(p.Subject):
		return "its sub must be one line of 1 to 255 bytes"
	case foreign:
		return "its azp names another client than the block"
	}
	return ""
}

// lacks reports whether userinfo could add something: a claim of a rule, the name, or the address.
func (p *Person) lacks(l *catalog.Login) bool {
	lacks := func(claim string) bool { return len(p.Claims.Values(claim)) == 0 }
	return lacks("name") || lacks("email") ||
		slices.ContainsFunc(l.Rules, func(r catalog.LoginRule) bool { return lacks(r.Claim) })
}

// addUserinfo adds claims of userinfo, or says why not: what is about another subject counts for nothing. That is no
// failure, since the ID token alone may let the person in.
func (p *Person) addUserinfo(ctx context.Context, from *provider, token *oauth2.Token) (note string) {
	if from.document.Userinfo == "" {
		return ""
	}
	var text json.RawMessage
	var more catalog.Claims
	info, err := from.oidc.UserInfo(from.with(ctx), oauth2.StaticTokenSource(token))
	if err == nil {
		err = info.Claims(&text)
	}
	if err == nil {
		more, err = catalog.ParseClaims(text)
	}
	switch {
	case err != nil:
		return asking("userinfo", err, token.AccessToken, token.RefreshToken).Message
	case more["sub"] != p.Subject:
		return "The provider's userinfo is about another person, and counts for nothing."
	case len(text) > maxTokenBytes:
		return "The provider's userinfo has more than 64 KiB, and counts for nothing."
	}
	p.merge(more)
	return ""
}

// merge adds claims that the ID token does not have: it wins.
func (p *Person) merge(more catalog.Claims) {
	own := p.Claims
	merged := catalog.Claims{}
	for claim, value := range more {
		if !has(own, claim) { // a literal name would hide the ID token's value at that path
			merged[claim] = value
		}
	}
	if _, given := more["email"]; given && own["email"] == nil && more.Email() == "" {
		own["email_verified"] = false // the ID token's word is not about this address
	}
	for claim, value := range own {
		merged[claim] = value
	}
	p.Claims = merged
}

// has reports whether claims have a value of that literal name, or at that path.
func has(c catalog.Claims, claim string) bool {
	if _, found := c[claim]; found {
		return true
	}
	var value any = map[string]any(c)
	for step := range strings.SplitSeq(claim, ".") {
		object, is := value.(map[string]any)
		if !is {
			return false
		}
		var found bool
		if value, found = object[step]; !found {
			return false
		}
	}
	return true
}

// line returns a claim as a name, "" if it is none.
func (p *Person) line(claim string) string {
	text, _ := p.Claims[claim].(string)
	return line(text)
}

func line(text string) string {
	text = clean(text, nil)
	if runes := []rune(text); len(runes) > maxNameRunes {
		text = strings.TrimSpace(string(runes[:maxNameRunes]))
	}
	return text
}
